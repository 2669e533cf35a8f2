"""A model scored by lm-evaluation-harness, as it is in memory; two of them item by item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.base.errors import UsageError
from headcount.base.json_object import JsonObject
from headcount.runs.contents import FILE
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.runs.results import Number, Result

if TYPE_CHECKING:
    from headcount.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class HarnessScore(JsonObject):
    """A number of lm-evaluation-harness, and the same number of the other model."""

    metric: str
    """The metric and its filter, as in `acc` or `exact_match,strict-match`."""
    value: Number
    """The score."""
    stderr: Number
    """Its standard error, as the harness estimates it."""
    n: int
    """Items."""
    against: Number = None
    """The score of the other model."""
    difference: Number = None
    """The score less that of the other model."""
    low: Number = None
    """The lower end of the difference's 95 % interval, paired item by item."""
    high: Number = None
    """Its upper end."""
    no_interval: str = ""
    """Why there is no interval."""


@dataclass(frozen=True, kw_only=True)
class HarnessTask(JsonObject):
    """One task of the harness."""

    task: str
    """The task."""
    version: str
    """Its version."""
    shots: int | None
    """Examples in the prompt."""
    scores: tuple[HarnessScore, ...]
    """What it is measured by."""
    items: str = ""
    """A fingerprint of its items and prompts; of a group it is empty."""


@dataclass(frozen=True, kw_only=True)
class LmEvalResult(Result):
    """A model scored by lm-evaluation-harness."""

    model: str
    """The model."""
    against: str | None
    """The model that it is compared with."""
    harness: str
    """The version of lm-evaluation-harness."""
    tasks: tuple[HarnessTask, ...]
    """Tasks, and groups of them."""

    def columns(self) -> dict[str, Any]:
        """The first score of every task."""
        return {task.task: task.scores[0].value for task in self.tasks if task.scores}


@dataclass(frozen=True, kw_only=True)
class LmEval(RunKind):
    """Score a model by tasks of lm-evaluation-harness."""

    result: ClassVar = LmEvalResult

    tasks: tuple[str, ...] = ()
    """Names of its tasks."""
    include_path: Path | None = None
    """Folder with YAML files of tasks of your own; they may name code, which is run."""
    against: str | None = field(default=None, metadata=FILE)
    """Another model that answers the same items: differences are paired, item by item."""
    limit: int | None = None
    """Items of each task: the first so many."""
    shots: int | None = None
    """Examples in the prompt; as many as the task says when left out."""
    batch: int = 8
    """Rows that the model reads at once."""
    bootstrap: int = 1000
    """Bootstrap resamples behind every interval."""

    def __post_init__(self) -> None:
        if not self.tasks:
            raise UsageError("lm-evaluation-harness is given no task: pass --lm-eval TASK.")
        for name, least in (("limit", 1), ("shots", 0), ("batch", 1), ("bootstrap", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"{name} must be at least {least}, not {value}.")

    def execute(self, run: Run, context: RunContext) -> RunOutput:
        """Score both models on the same items; the value is the result."""
        from headcount.runs.harness import compare_items, run_harness
        from headcount.runs.opening import depends_on, name_of
        from headcount.runs.values import used_rows

        name = name_of(run)
        outputs = {
            model: run_harness(model, self, run.model_options, seed=run.seed)
            for model in dict.fromkeys([name, self.against] if self.against else [name])
        }
        mine = outputs[name]
        other = outputs[self.against].tables if self.against else None
        tasks = compare_items(mine.tables, other, bootstrap=self.bootstrap, seed=run.seed)
        rows = {
            task.task: used_rows(
                f"{max(score.n for score in task.scores)} rows {task.items}", "items"
            )
            for task in tasks
            if task.items and task.scores
        }
        result: Mapping[str, Any] = {
            "model": name,
            "against": self.against,
            "harness": mine.version,
            "tasks": [task.to_json() for task in tasks],
        }
        more = {"harness": mine.version, "scored": {task.task: task.items for task in tasks}}
        if self.against:
            more["other"] = outputs[self.against].identity
        done = LmEvalResult.from_json(result)
        return RunOutput(
            result=done,
            identity=depends_on(run, mine.model, mine.tokenizer, **more),
            rows=rows,
            value=done,
        )

    def plan(self, run: Run) -> dict[str, Any]:
        """What would be scored."""
        return {"tasks": ", ".join(self.tasks), "against": self.against, "items": self.limit}
