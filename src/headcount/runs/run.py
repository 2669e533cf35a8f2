"""A run is a value: what is asked of which model, in plain data that any process can carry out.

    base = Run("train", "bert-base-uncased", task="mrpc", options=Train())
    cut  = Run("prune", base, task="mrpc", options=Prune(method=Surgeon(), ratio=0.5))
    record = hc.run(cut, "small")          # base is found in the store, or made first, once

The same value is what a command makes of its options, what `record.json` keeps and what a study
file holds: `Run.read(run.to_plain())` gives the run back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headcount.errors import UsageError
from headcount.models.opening import Opening
from headcount.options import read, to_plain
from headcount.registry import Registry
from headcount.tasks.source import Source

KINDS = Registry("kind of run")
for _name, _where, _summary in (
    ("train", "headcount.runs.kinds:Train", "A model trained on a task."),
    ("evaluate", "headcount.runs.kinds:Evaluate", "A model scored on a task."),
    ("redundancy", "headcount.runs.kinds:Redundancy", "A distance for every pair of heads."),
    ("importance", "headcount.runs.kinds:Importance", "How much a loss feels each head."),
    ("prune", "headcount.runs.asked:Prune", "Heads chosen, removed, repaired and scored."),
    ("transfer", "headcount.runs.kinds:Transfer", "Two checkpoints compared head by head."),
    ("bench", "headcount.runs.kinds:Bench", "A model timed dense, masked and cut."),
):
    KINDS.add(_name, _where, _summary)


@dataclass(frozen=True)
class Run:
    """One run: a kind, its options, and its inputs, which may be other runs."""

    kind: str
    """What is done; see `headcount ls runs`."""
    model: str | Run
    """A folder, a name on the hub, a shipped model, or the run whose model it is."""
    options: Any = field(kw_only=True)
    """The options of this kind."""
    task: str | None = field(default=None, kw_only=True)
    """What is measured on; see `headcount ls tasks`."""
    source: Source = field(default_factory=Source, kw_only=True)
    """Where the task's rows come from."""
    opening: Opening = field(default_factory=Opening, kw_only=True)
    """How the model is opened."""
    seed: int = field(default=0, kw_only=True)
    """Seed of everything random in the run."""

    def __post_init__(self) -> None:
        kind: Any = KINDS[self.kind]
        if not isinstance(self.options, kind):
            raise UsageError(
                f"A run of the kind '{self.kind}' has options of {kind.__name__}, not of "
                f"{type(self.options).__name__}."
            )

    @property
    def key(self) -> str:
        """A short name for what is asked, whatever computes it: the name of the run's folder."""
        asked = self.to_plain()
        asked["opening"] = {"tokenizer": self.opening.tokenizer, "dtype": self.opening.dtype}
        text = json.dumps(asked, sort_keys=True, default=repr)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def to_plain(self) -> dict[str, Any]:
        """Plain data; `read` gives the run back."""
        return {
            "kind": self.kind,
            "model": self.model if isinstance(self.model, str) else self.model.to_plain(),
            "task": self.task,
            "source": {name: value for name, value in to_plain(self.source).items() if value},
            "opening": to_plain(self.opening),
            "seed": self.seed,
            "options": to_plain(self.options),
        }

    @classmethod
    def read(cls, data: Any, where: str = "run") -> Run:
        """The run that `to_plain` wrote; all mistakes of a part are told at once."""
        if not isinstance(data, Mapping) or not isinstance(data.get("kind"), str):
            raise UsageError(f"{where} names no kind of run.")
        kind: Any = _named(data["kind"], where)
        parts = ("kind", "model", "task", "source", "opening", "seed", "options")
        if strange := [name for name in data if name not in parts]:
            raise UsageError(f"{where} has no part '{strange[0]}'; a run has {', '.join(parts)}.")
        model, task, seed = data.get("model"), data.get("task"), data.get("seed", 0)
        if isinstance(model, Mapping):
            model = cls.read(model, f"{where}.model")
        if not isinstance(model, str | Run) or not isinstance(task, str | None):
            raise UsageError(f"{where} names no model, or a task that is no name.")
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise UsageError(f"{where}.seed is a whole number, not {seed!r}.")
        return cls(
            data["kind"],
            model,
            task=task,
            seed=seed,
            source=read(Source, data.get("source", {}), f"{where}.source"),
            opening=read(Opening, data.get("opening", {}), f"{where}.opening"),
            options=_options(kind, data.get("options", {}), f"{where}.options"),
        )


def _named(name: str, where: str) -> Any:
    try:
        return KINDS[name]
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _options(kind: Any, data: Any, where: str) -> Any:
    return kind.read(data, where) if hasattr(kind, "read") else read(kind, data, where)
