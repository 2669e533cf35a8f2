"""Parts that results of several kinds have, and what every result can say of itself.

A result is what a record has of its kind: the class is in the file of the kind (`runs/kinds/`), and
`docs/records.md` and the JSON Schema of records are made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from headcount.base.json_object import JsonObject

if TYPE_CHECKING:
    from headcount.training.evaluation import Evaluation

Number = float | None
"""None where it is undefined."""
ByHead = Mapping[str, tuple[tuple[Number, ...], ...]]
"""Stack -> layer -> a number for each head."""


@dataclass(frozen=True, kw_only=True)
class MetricValue(JsonObject):
    """A number in the unit of a metric, with its 95 % interval."""

    metric: str
    """The metric."""
    value: Number
    """The score, or the difference of two."""
    low: Number
    """The lower end of the interval; null where rows are too few."""
    high: Number
    """Its upper end."""
    no_interval: str = ""
    """Why there is no interval."""


@dataclass(frozen=True, kw_only=True)
class ScoreResult(JsonObject):
    """The scores of a model on the rows of a task."""

    task: str
    """The task."""
    split: str
    """The rows: a split, or a half of one."""
    metric: str
    """What the score is measured by."""
    score: Number
    """The score."""
    low: Number
    """The lower end of its 95 % interval; null where rows are too few."""
    high: Number
    """Its upper end."""
    scores: Mapping[str, MetricValue]
    """All metrics of the task, by name."""
    n: int
    """How many rows were scored."""
    seed: int
    """Of the sample of rows, and of the bootstrap."""
    no_interval: str = ""
    """Why there is no interval: how many rows it takes."""
    heads_kept: str = ""
    """The heads that stay in each layer, of a mask."""
    signature: str = ""
    """What a BLEU score depends on, in sacrebleu's words."""


@dataclass(frozen=True, kw_only=True)
class EvaluationResult(ScoreResult):
    """The scores of a model on the rows of a task, with its time and these rows."""

    seconds: float
    """The time of the model alone."""
    rows: str | None = None
    """A fingerprint of the rows: scores with the same one are comparable row by row."""

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """An evaluation as a record has it."""
        return cls.from_json(evaluation.to_json())


@dataclass(frozen=True, kw_only=True)
class RowsRead(JsonObject):
    """Rows that a run has read."""

    split: str
    """The split, or what they are."""
    n: int | None
    """How many."""
    seed: int | None
    """Of the sample; null for all rows."""
    fingerprint: str | None
    """A short name for their content."""
    sampled: int | None = None
    """How many of them were used at most."""


@dataclass(frozen=True, kw_only=True)
class RecordFields(JsonObject):
    """What every record has, whatever its kind."""

    format: str
    """headcount."""
    version: int
    """The version of this page, 1; another one is refused."""
    kind: str
    """The kind of run."""
    id: str
    """A short name for `identity`: two records with the same one answer the same question."""
    run: Mapping[str, Any]
    """The whole run: `kind`, `model` (a name, a folder, or another run), `task`, `source` (where
    its rows come from), `model_options` (tokenizer, device, dtype), `seed` (of everything random),
    and the `options` of the kind."""
    identity: Mapping[str, Any]
    """What the result depends on, by content: weights, config, tokenizer, rows, options. `model`,
    `device` and `versions` are in it and may differ."""
    versions: Mapping[str, Any]
    """What computed it."""
    device: str
    """Where."""
    command: str | None
    """By which command; null from Python."""
    seconds: float
    """How long it took."""
    rows: Mapping[str, RowsRead]
    """Which rows were used for `calibration`, `repair`, `training` and `evaluation`, or `measured`
    by a run that only measures."""
    notes: tuple[str, ...]
    """What a reader must not miss; the same sentences were printed."""


class Result(JsonObject):
    """What came out of a run of one kind; derived classes are frozen dataclasses."""

    def columns(self) -> dict[str, Any]:
        """What the table of a study has of a finished run, beside its time and score."""
        return {}

    @property
    def evaluated(self) -> ScoreResult | None:
        """The score that the run is about; None without one."""
        return None


@dataclass(frozen=True, kw_only=True)
class PlainResult(Result):
    """A result without a type: any keys."""

    rest: ClassVar = "data"

    data: Mapping[str, Any] = field(default_factory=dict)
    """What came out."""
