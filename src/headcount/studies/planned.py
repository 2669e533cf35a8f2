"""A study file becomes runs: every one a value, with those it starts from inside.

    plan = read_plan("methods.yaml")
    plan.cells[0].run, plan.cells[0].axes       # Run(...), {"method": "random", "seed": 0}

Nothing is imported, opened or computed for it: what cannot be is refused here, all at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from headcount.errors import HeadcountError, UsageError
from headcount.names import did_you_mean
from headcount.options import OptionsError, read
from headcount.runs.check import check_run
from headcount.runs.contents import digest
from headcount.runs.kinds import SEEDED, Probe
from headcount.runs.run import PARTS, Best, Run
from headcount.studies.grid import (
    SHORT,
    axes_of,
    axis_named,
    cells,
    label,
    matches,
    merged,
    named,
    put,
)
from headcount.studies.written import SHIPPED, Written, read_written

GROUP = (*PARTS, *SHORT, "grid", "overrides", "exclude", "keep", "launch", "about")
"""What a group of runs may say."""
REFERENCES = ("run", "best")
STAND_IN = Run("probe", "none", options=Probe())
"""In place of a run that has mistakes."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a study file says beside its runs."""

    name: str = ""
    """What the study is called; the file's name when left out."""
    about: str = ""
    """What it is for, in a sentence."""
    out: Path | None = None
    """The folder of its records; a folder of the study's name beside the file when left out."""
    keep: Literal["records", "models"] = "records"
    """Keep the models of cuts and trainings, or of those only that other runs start from."""
    threads: int = 1
    """Threads of a run on a processor: with another number the last digits can differ."""
    retries: int = 2
    """How often a run is tried again whose process was killed."""
    lease: float = 60.0
    """Seconds without a sign of life after which a run is taken over from its worker."""

    def __post_init__(self) -> None:
        if self.threads < 1 or self.retries < 0 or self.lease <= 0:
            raise UsageError("threads is 1 or more, retries 0 or more, lease above 0 seconds.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """One run of a study, and where it stands in it."""

    group: str
    axes: Mapping[str, Any]
    """Short name of each axis -> its value, for tables."""
    run: Run
    launch: tuple[str, ...] = ()
    """What starts the run as several processes, such as accelerate launch."""
    keep: bool = False
    """Keep the model it makes."""

    @property
    def key(self) -> str:
        """The run's key."""
        return self.run.key


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """All runs of a study file."""

    path: Path
    settings: Settings
    cells: Sequence[Cell]
    data: Mapping[str, Any] = field(repr=False)
    """The file as it was read."""

    @property
    def name(self) -> str:
        """What the study is called."""
        return self.settings.name or self.path.stem

    @property
    def out(self) -> Path:
        """The folder of its records, unless the caller says another."""
        if self.settings.out is not None:
            return self.settings.out
        shipped = self.path.parent == SHIPPED  # no place to write to
        return Path(self.name) if shipped else self.path.parent / self.name

    @cached_property
    def by_key(self) -> dict[str, Cell]:
        """Every run once, those that others start from before them."""
        found: dict[str, Cell] = {}
        needed = {each.key for cell in self.cells for each in _all_inputs(cell.run)}
        own = {cell.key: cell for cell in self.cells}

        def add(run: Run, cell: Cell | None) -> None:
            if run.key in found:
                return
            for each in run.inputs:
                add(each, own.get(each.key))
            cell = cell or Cell(group="", axes={}, run=run)
            keep = cell.keep or run.key in needed
            found[run.key] = Cell(
                group=cell.group, axes=cell.axes, run=run, launch=cell.launch, keep=keep
            )

        for cell in self.cells:
            add(cell.run, cell)
        return found

    @property
    def digest(self) -> str:
        """A short name for everything that is asked, whatever the file looks like."""
        return digest(sorted(self.by_key))


def read_plan(path: str | Path | Mapping[str, Any]) -> Plan:
    """The plan of a study file, or of the same as a mapping; all mistakes are told at once."""
    if isinstance(path, Mapping):
        written = Written(path=Path("study"), data=dict(path))
    else:
        written = read_written(path)
    data = written.data
    known = ("defaults", "runs", *Settings.__dataclass_fields__)
    for name in data:
        if name not in known:
            written.wrong((name,), f"a study has no '{name}'.{did_you_mean(name, known)}")
    settings = Settings()
    try:
        asked = {name: data[name] for name in Settings.__dataclass_fields__ if name in data}
        settings = read(Settings, asked, "study")
    except UsageError as error:
        _note(written, (), error)
    groups = data.get("runs")
    if not isinstance(groups, Mapping) or not groups:
        written.wrong(("runs",), "a study has runs: groups by name.")
        groups = {}
    made = _Groups(written, settings, groups)
    found = [cell for name in groups for cell in made.build(name)]
    written.refuse()
    return Plan(path=written.path, settings=_at_home(settings, written), cells=found, data=data)


def _at_home(settings: Settings, written: Written) -> Settings:
    if settings.out is None or settings.out.is_absolute():
        return settings
    from dataclasses import replace

    return replace(settings, out=written.path.parent / settings.out)


def _all_inputs(run: Run) -> Iterator[Run]:
    for each in run.inputs:
        yield each
        yield from _all_inputs(each)


def _note(written: Written, place: Sequence[str], error: HeadcountError) -> None:
    """Put down every mistake of a refusal at its own place."""
    for inner, text in getattr(error, "mistakes", [((), str(error))]):
        written.wrong((*place, *inner), text)


class _Groups:
    """The groups of a study file, built one after the other, each when it is first asked for."""

    def __init__(self, written: Written, settings: Settings, groups: Mapping[str, Any]) -> None:
        self.written, self.settings, self.groups = written, settings, groups
        self.done: dict[str, list[tuple[dict[str, Any], Cell]]] = {}
        self.under_way: list[str] = []
        self.broken: set[str] = set()

    def build(self, name: str) -> list[Cell]:
        """The runs of a group."""
        return [cell for _, cell in self._built(name)]

    def _built(self, name: str) -> list[tuple[dict[str, Any], Cell]]:
        if name not in self.done:
            self.under_way.append(name)
            before = len(self.written.mistakes)
            self.done[name] = list(self._make(name))
            if len(self.written.mistakes) > before:
                self.broken.add(name)
            self.under_way.pop()
        return self.done[name]

    def _make(self, name: str) -> Iterator[tuple[dict[str, Any], Cell]]:
        place, group = ("runs", name), self.groups[name]
        if not isinstance(group, Mapping):
            self.written.wrong(place, "a group of runs has names with values.")
            return
        strange = [each for each in group if each not in GROUP]
        for each in strange:
            hint = did_you_mean(each, GROUP)
            self.written.wrong((*place, each), f"a group of runs has no '{each}'.{hint}")
        try:
            axes = axes_of(group)
            exclude = self._conditions(group, "exclude", axes, place)
            overrides = self._conditions(group, "overrides", axes, place)
        except UsageError as error:
            _note(self.written, place, error)
            return
        if strange:
            return
        try:
            starts = self._starts(group)
        except UsageError as error:
            self.written.wrong((*place, "model"), str(error))
            return
        for (theirs, model), own in itertools.product(starts, list(cells(axes))):
            cell = {**theirs, **own}
            if not _agree(theirs, own, {}) or any(matches(cell, each) for each in exclude):
                continue
            try:
                yield cell, self._run(name, group, own, cell, overrides, model)
            except HeadcountError as error:
                _note(self.written, place, error)

    def _starts(self, group: Mapping[str, Any]) -> Sequence[tuple[dict[str, Any], Run | None]]:
        """The runs that a group starts from where it names each of another group; else nothing."""
        model = group.get("model")
        if not isinstance(model, Mapping) or not isinstance(model.get("each"), str):
            return [({}, None)]
        return self._meant(model, "each", {})

    def _conditions(self, group: Any, part: str, axes: Any, place: Any) -> list[Any]:
        found = group.get(part, [])
        if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
            raise UsageError(f"{part} is a list of conditions.")
        for at, each in enumerate(found):
            when = each.get("when", {}) if part == "overrides" else each
            for axis in when:
                if axis_named(axis, axes) is None:
                    hint = did_you_mean(axis, axes) or f" It has: {', '.join(axes)}."
                    where = (*place, part, str(at))
                    self.written.wrong(where, f"the group has no axis '{axis}'.{hint}")
            if part == "overrides" and not isinstance(each.get("set"), Mapping):
                self.written.wrong((*place, part, str(at)), "an override has 'when' and 'set'.")
        return found

    def _run(
        self,
        name: str,
        group: Any,
        own: dict[str, Any],
        cell: dict[str, Any],
        overrides: list[Any],
        model: Run | None,
    ) -> Cell:
        """One run; `cell` has its `own` axes and those of the run whose model it starts from."""
        asked: Any = {part: group[part] for part in PARTS if part in group}
        asked = merged(self.written.data.get("defaults", {}), asked)
        if not isinstance(asked, Mapping):
            raise OptionsError("defaults are parts of a run.", [((), "defaults are no object.")])
        asked = dict(asked) | ({} if model is None else {"model": model})
        for axis, value in own.items():
            put(asked, axis, value)
        for each in overrides:
            if matches(cell, each.get("when", {})):
                for axis, value in each.get("set", {}).items():
                    put(asked, SHORT.get(str(axis), str(axis)), value)
        _spread_seed(asked)
        resolved = self._resolved(asked, name, cell, ())
        run = self._read(resolved, name)
        keep = group.get("keep", self.settings.keep) == "models"
        launch = group.get("launch", ())
        words = launch.split() if isinstance(launch, str) else launch
        axes = {label(axis): named(value) for axis, value in cell.items()}
        check_run(run)
        return Cell(group=name, axes=axes, run=run, launch=tuple(map(str, words)), keep=keep)

    def _read(self, asked: dict[str, Any], name: str) -> Run:
        folder = self.written.path.parent
        try:
            return Run.read(_from_file(asked, folder), name)
        except OptionsError as error:
            inner = str(error).partition(f"In {name}.")[2].partition(":")[0].split(".")[0]
            moved = [((inner, *place), text) for place, text in error.mistakes]
            raise OptionsError(str(error), moved if inner else error.mistakes) from error

    def _resolved(self, value: Any, name: str, cell: Any, place: tuple[str, ...]) -> Any:
        """Plain data with the runs that it refers to in place of their names."""
        if isinstance(value, list):
            return [self._resolved(each, name, cell, place) for each in value]
        if not isinstance(value, Mapping):
            return value
        word = next((each for each in REFERENCES if each in value), None)
        if word is None or not isinstance(value[word], str) or len(place) == 0:
            return {
                key: self._resolved(item, name, cell, (*place, key)) for key, item in value.items()
            }
        runs = [run for _, run in self._meant(value, word, cell)]
        return Best(tuple(runs)) if word == "best" else runs[0]

    def _meant(
        self, value: Mapping[str, Any], word: str, cell: dict[str, Any]
    ) -> list[tuple[dict[str, Any], Run]]:
        """The runs that a reference means: of that group, those that agree on what both have."""
        group, chosen = value[word], {key: each for key, each in value.items() if key != word}
        if group not in self.groups:
            known = list(self.groups)
            raise UsageError(f"there is no group of runs '{group}'.{did_you_mean(group, known)}")
        if group in self.under_way:
            way = " → ".join([*self.under_way, group])
            raise UsageError(f"runs cannot start from themselves: {way}.")
        found = [
            (axes, each.run)
            for axes, each in self._built(group)
            if all(
                axes[axis] == cell[axis] for axis in axes if axis in cell and not chosen.get(axis)
            )
            and matches(axes, chosen)
        ]
        if group in self.broken:
            return [({}, STAND_IN)]  # its own mistakes are told; what refers to it may have others
        if not found:
            raise UsageError(f"no run of the group '{group}' is meant by {dict(value)}.")
        if word == "run" and len(found) > 1:
            differ = [
                axis for axis in found[0][0] if len({str(axes[axis]) for axes, _ in found}) > 1
            ]
            raise UsageError(
                f"{len(found)} runs of the group '{group}' are meant, which differ in "
                f"{', '.join(differ)}: say which, as in {{run: {group}, {differ[0]}: …}}, or "
                f"{{each: {group}}} for all of them, or {{best: {group}}}."
            )
        return found


def _agree(axes: Mapping[str, Any], cell: Mapping[str, Any], chosen: Mapping[str, Any]) -> bool:
    """Whether two runs have the same values where both have an axis, and nobody says another."""
    said = {axis_named(name, axes) for name in chosen}
    return all(axes[name] == cell[name] for name in axes if name in cell and name not in said)


def _spread_seed(asked: dict[str, Any]) -> None:
    """The run's seed is that of its kind's own options, unless they say one."""
    place = SEEDED.get(str(asked.get("kind")))
    if place is None or "seed" not in asked:
        return
    part, _, name = place.partition(".")
    options = dict(asked.get("options") or {})
    inner = options.get(part)
    if inner is None or (isinstance(inner, Mapping) and name not in inner):
        options[part] = {**(inner or {}), name: asked["seed"]}
        asked["options"] = options


def _from_file(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A run with paths as they are meant by a file in this folder."""
    found = dict(asked)
    if isinstance(found.get("model"), str):
        found["model"] = _path(found["model"], folder)
    source = found.get("source")
    if isinstance(source, Mapping):
        names = ("data", "train", "dev")
        found["source"] = {
            key: _path(value, folder) if key in names and isinstance(value, str) else value
            for key, value in source.items()
        }
    return found


def _path(text: str, folder: Path) -> str:
    path = folder / Path(text).expanduser()
    return str(path.resolve()) if path.exists() else text
