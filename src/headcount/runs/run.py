"""A run is a value: what is asked of which model, in plain data that any process can execute.

    base = Run("train", "bert-base-uncased", task="mrpc", options=Train())
    cut  = Run("prune", base, task="mrpc", options=Prune(method=Surgeon(), ratio=0.5))
    record = hc.run(cut, "small")          # base is found in the store, or made first, once

The same value is what a command makes of its options, what `record.json` keeps and what a study
file holds: `Run.read(run.to_plain())` gives the run back. Wherever an option names a file or folder
that another run makes (`Cluster(redundancy=…)`), the plain form may have that run in its place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from headcount.base.digest import plain_digest
from headcount.base.errors import UsageError
from headcount.base.files import expanded
from headcount.base.json_object import JsonDict
from headcount.base.names import nearest
from headcount.base.options import Mistakes, OptionsError, read, to_plain
from headcount.base.plugins import plugin_code
from headcount.likeness.distances import DISTANCES
from headcount.models.model_options import ModelOptions
from headcount.models.shipped import is_shipped
from headcount.pruning.methods import METHODS
from headcount.repair.repairs import REPAIRS
from headcount.runs.contents import by_content, named_files
from headcount.runs.kinds import KINDS
from headcount.runs.kinds.kind import RunKind
from headcount.tasks.catalog import TASKS
from headcount.tasks.source import Source
from headcount.training.options import SAVING as SAVING_OPTIONS
from headcount.training.options import TrainOptions

Kind = TypeVar("Kind", bound=RunKind)
SAVING = {name: getattr(TrainOptions, name) for name in SAVING_OPTIONS}
"""How often a training saves, where nothing is said."""
MODEL_FILE = re.compile(r"config\.json$|tokenizer|vocab|.*\.(model|spm|safetensors|bin)$")
"""Names of files that only a folder of a model or tokenizer has."""


@dataclass(frozen=True)
class Best:
    """In place of a model: that of the run with the best score among several."""

    runs: tuple[Run, ...]

    def to_plain(self) -> JsonDict:
        """Plain data; `read_model` gives it back."""
        return {"best": [run.to_plain() for run in self.runs]}


@dataclass(frozen=True)
class InMemory:
    """In place of a model: one that only this process holds, named by its content.

    The fingerprint covers everything about it that a run depends on: weights, config, tokenizer,
    and the rows of its task.
    """

    fingerprint: str
    name: str = field(default="", compare=False)
    """What it is called in tables and records."""

    def to_plain(self) -> JsonDict:
        """Plain data; `read_model` gives it back."""
        return {"in_memory": self.fingerprint, "name": self.name}


@dataclass(frozen=True)
class Run:
    """One run: a kind, its options, and its inputs, which may be other runs."""

    kind: str
    """What is done; see `headcount ls runs`."""
    model: str | Run | Best | InMemory
    """A folder, a name on the hub, a shipped model, the run whose model it is, or one in memory."""
    options: RunKind = field(kw_only=True)
    """The options of this kind."""
    task: str | None = field(default=None, kw_only=True)
    """What is measured on; see `headcount ls tasks`."""
    source: Source = field(default_factory=Source, kw_only=True)
    """Where the task's rows come from."""
    model_options: ModelOptions = field(default_factory=ModelOptions, kw_only=True)
    """How the model is opened."""
    seed: int = field(default=0, kw_only=True)
    """Seed of everything random in the run, and its only home: a seed that the options of a kind
    say is taken from there, and `options_as` and `to_plain` give them the run's."""
    option_runs: tuple[tuple[str, Run], ...] = field(default=(), kw_only=True)
    """Options that name what another run makes: where they stand (`method.redundancy`), the run."""

    def __post_init__(self) -> None:
        kind: Any = KINDS[self.kind]
        if not isinstance(self.options, kind):
            raise UsageError(
                f"A run of the kind '{self.kind}' has options of {kind.__name__}, not of "
                f"{type(self.options).__name__}."
            )
        part = kind.seeded
        if part is not None and (seed := getattr(self.options, part).seed):
            if self.seed not in (0, seed):
                text = f"The run's seed is {self.seed}, and its options say {seed}: say it once."
                raise OptionsError(text, [(("options", part, "seed"), text)])
            object.__setattr__(self, "seed", seed)
            object.__setattr__(self, "options", _with_seed(self.options, 0))

    def options_as(self, kind: type[Kind]) -> Kind:
        """The options, which are those of the run's kind, with its seed."""
        assert isinstance(self.options, kind)
        return _with_seed(self.options, self.seed)

    @cached_property
    def key(self) -> str:
        """A short name for what is asked, whatever computes it: the name of the run's folder.

        Files and folders count by their content, and so do plugins: a run on other rows or weights
        is another run.
        """
        plain = self.to_plain(deep=False)
        plain["model_options"] = {
            "tokenizer": self.model_options.tokenizer,
            "dtype": self.model_options.dtype,
        }
        plain["made"] = [(path, run.key) for path, run in self.option_runs]
        plain["inputs"] = [run.key for run in self.inputs]
        if isinstance(self.model, InMemory):
            plain["model"] = {"in_memory": self.model.fingerprint}
        elif not isinstance(self.model, str):
            plain["model"] = type(self.model).__name__
        if code := plugin_code(plain, (METHODS, REPAIRS, TASKS, DISTANCES)):
            plain["plugins"] = code
        return plain_digest(by_content(_decisive(plain), self.files))

    @property
    def files(self) -> set[str]:
        """What it names that may be a file or a folder: those count by their content."""
        names = {self.model, self.model_options.tokenizer}
        local = {
            name
            for name in names
            if isinstance(name, str) and not is_shipped(name) and _is_here(name)
        }
        return local.union(named_files(self.source), named_files(self.options))

    @property
    def inputs(self) -> tuple[Run, ...]:
        """The runs that must be done before this one."""
        model = self.model
        first = (model,) if isinstance(model, Run) else getattr(model, "runs", ())
        return (*first, *(run for _, run in self.option_runs))

    def with_products(self, model: str, paths: Sequence[str]) -> Run:
        """The run on what its inputs made: the model, and a path for each of `option_runs`."""
        plain = to_plain(self.options)
        for (field_path, _), path in zip(self.option_runs, paths, strict=True):
            _put(plain, field_path.split("."), path)
        options = _options(KINDS[self.kind], plain, "options")
        return replace(self, model=model, options=options, option_runs=())

    def to_plain(self, *, deep: bool = True) -> JsonDict:
        """Plain data; `read` gives the run back. Not `deep`, it leaves out the runs inside."""
        options = to_plain(_with_seed(self.options, self.seed))
        if deep:
            for field_path, run in self.option_runs:
                _put(options, field_path.split("."), run.to_plain())
        inside = self.model if isinstance(self.model, str) or not deep else self.model.to_plain()
        return {
            "kind": self.kind,
            "model": inside,
            "task": self.task,
            "source": {name: value for name, value in to_plain(self.source).items() if value},
            "model_options": to_plain(self.model_options),
            "seed": self.seed,
            "options": options,
        }

    @classmethod
    def read(cls, data: object, where: str = "run") -> Run:
        """The run that `to_plain` wrote; all its mistakes are told at once."""
        if not isinstance(data, Mapping) or not isinstance(data.get("kind"), str):
            raise UsageError(f"{where} names no kind of run.")
        mistakes, parts, name = Mistakes(), JsonDict(), data["kind"]
        with mistakes.at("kind"):
            _named(name, where)
        for strange in (part for part in data if part not in PARTS):
            with mistakes.at(str(strange)):
                known = ", ".join(PARTS)
                raise UsageError(f"{where} has no part '{strange}'; a run has {known}.")
        for part, reader in READERS.items():
            with mistakes.at(part):
                parts[part] = reader(data.get(part), f"{where}.{part}")
        with mistakes.at("options"):
            options, inside = _without_runs(data.get("options", {}), f"{where}.options")
            parts["option_runs"] = tuple(inside)
            meant = name if name in KINDS else nearest(name, (entry.name for entry in KINDS))
            if meant is not None:  # a kind with a typing error has other mistakes to tell
                parts["options"] = _options(KINDS[meant], options, f"{where}.options")
        mistakes.refuse()
        return cls(name, **parts)


def _is_here(name: str) -> bool:
    """Whether a name is that of a file, or of a folder with files of a model or tokenizer in it."""
    path = expanded(name)
    if not os.path.isdir(path):
        return os.path.isfile(path)
    try:
        return any(MODEL_FILE.match(file) for file in os.listdir(path))
    except OSError:
        return True  # whoever reads it says why it cannot be


PARTS = ("kind", "model", "task", "source", "model_options", "seed", "options")


def read_model(data: object, where: str) -> str | Run | Best | InMemory | None:
    """A model as it is named in plain data; None where it is not."""
    if isinstance(data, Mapping) and isinstance(data.get("best"), Sequence):
        runs = [Run.read(run, f"{where}.best") for run in data["best"]]
        if not runs:
            raise UsageError(f"{where}.best names no run.")
        return Best(tuple(runs))
    if isinstance(data, Mapping) and isinstance(data.get("in_memory"), str):
        return InMemory(data["in_memory"], str(data.get("name", "")))
    if isinstance(data, Mapping):
        return Run.read(data, where)
    return data if isinstance(data, str | Run | Best | InMemory) else None


def _a_model(data: object, where: str) -> str | Run | Best | InMemory:
    model = read_model(data, where)
    if model is None:
        raise UsageError(f"{where} names no model.")
    return model


def _a_task(data: object, where: str) -> str | None:
    if not isinstance(data, str | None):
        raise UsageError(f"{where} is the name of a task, not {data!r}.")
    return data


def _a_seed(data: object, where: str) -> int:
    if data is not None and (not isinstance(data, int) or isinstance(data, bool)):
        raise UsageError(f"{where} is a whole number, not {data!r}.")
    return data or 0


READERS: dict[str, Callable[[Any, str], Any]] = {
    "model": _a_model,
    "task": _a_task,
    "source": lambda data, where: read(Source, {} if data is None else data, where),
    "model_options": lambda data, where: read(ModelOptions, {} if data is None else data, where),
    "seed": _a_seed,
}
"""Parts of a run that all kinds have, and what reads each."""


def _without_runs(data: object, where: str) -> tuple[object, list[tuple[str, Run]]]:
    """Options with a word in place of every run inside, and those runs by where they stood."""
    runs = [
        (".".join(path), inside if isinstance(inside, Run) else Run.read(inside, where))
        for path, inside in _runs_inside(data)
    ]
    if not runs:
        return data, []
    plain = to_plain(data)
    for path, run in runs:
        _put(plain, path.split("."), f"run {run.key}")
    return plain, runs


def _runs_inside(
    data: object, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(data, Run) or (isinstance(data, Mapping) and {"kind", "model"} <= set(data)):
        yield path, data
    elif isinstance(data, Mapping):
        for name, value in data.items():
            yield from _runs_inside(value, (*path, str(name)))
    elif isinstance(data, list | tuple):
        for at, value in enumerate(data):
            yield from _runs_inside(value, (*path, str(at)))


def _with_seed(options: Kind, seed: int) -> Kind:
    """Options of a kind with this seed in the part that draws; as they are where there is none."""
    part = options.seeded
    if part is None:
        return options
    changed = {part: replace(getattr(options, part), seed=seed)}
    return replace(options, **changed)


def _decisive(value: object) -> object:
    """A nest of what changes what comes out: not how often a training saves, nor what is None, so
    that an option which is new, and None where it is not used, leaves the keys of runs as they are.
    """
    if isinstance(value, Mapping):
        usual = SAVING if SAVING.keys() <= value.keys() else {}
        pairs = {**value, **usual}.items()
        return {name: _decisive(item) for name, item in pairs if item is not None}
    return [_decisive(item) for item in value] if isinstance(value, list) else value


def _put(data: Any, path: Sequence[str], value: Any) -> None:
    """Put a value deep into a nest of objects and lists."""
    *way, last = path
    for name in way:
        data = data[int(name) if isinstance(data, list) else name]
    data[int(last) if isinstance(data, list) else last] = value


def _named(name: str, where: str) -> object:
    try:
        return KINDS[name]
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _options(kind: Any, data: Any, where: str) -> object:
    return kind.read(data, where) if hasattr(kind, "read") else read(kind, data, where)
