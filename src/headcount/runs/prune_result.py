"""What came out of a prune: heads, repairs, scores before and after, and random prunings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from headcount.base.json_object import JsonObject
from headcount.heads import Mask
from headcount.runs.results import EvaluationResult, MetricValue, Number, Result


@dataclass(frozen=True, kw_only=True)
class HeadCounts(JsonObject):
    """Heads before and after pruning."""

    before: int
    """Heads of the model that was given."""
    after: int
    """Heads that stay."""
    kept: str
    """How many stay in each layer: 777322."""


@dataclass(frozen=True, kw_only=True)
class ParameterCounts(JsonObject):
    """Parameters before and after pruning."""

    before: int
    """Of the model that was given."""
    after: int
    """Of the pruned model."""


@dataclass(frozen=True, kw_only=True)
class RepairStep(JsonObject):
    """One step of the repair, and what it cost."""

    rest: ClassVar = "details"

    name: str
    """The repair."""
    options: Mapping[str, Any]
    """Its options, with the seed it had."""
    rows: str | None = None
    """The task whose rows it read, or given."""
    steps: int = 0
    """Steps of training."""
    examples: int = 0
    """Rows trained on, each as often as it was."""
    seconds: float = 0.0
    """How long it took."""
    with_gates: bool = False
    """The gates had this training, and there was none after the heads were removed."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else the step says: `layers` of recover, how well each layer fits, and where it chose
    `chosen`, `trials` and `held_back`; of distil and lora `loss`, the divergence from the full
    model on rows that were held back, `before` and `after`, whether its weights were `kept`, the
    `tokens` it was trained on and the rows `held_back`; `resumed_from` of training, the step where
    it went on."""


@dataclass(frozen=True, kw_only=True)
class DataBudget(JsonObject):
    """What a pruning cost in data."""

    epochs: float
    """Epochs of training."""
    examples: int
    """Rows trained on, each as often as it was."""
    steps: int
    """Steps of training."""
    examples_measured: int
    """Rows read without training, each as often as it was."""


@dataclass(frozen=True, kw_only=True)
class GateGap(JsonObject):
    """The score with gates as in training, and as in use."""

    train: Number
    """With gates as they are drawn in training."""
    test: Number
    """With gates as they are in the pruned model."""
    gap: Number
    """The first minus the second."""
    draws: int
    """Draws of the gates behind the first."""
    split: str
    """The rows."""
    metric: str
    """The metric."""


@dataclass(frozen=True, kw_only=True)
class LearnedResult(JsonObject):
    """How gates that were trained came to their number."""

    steps: int
    """Steps of training."""
    rows: int
    """Different rows in the training data."""
    examples: int
    """Rows trained on, each as often as it was."""
    seconds: float
    """How long it took."""
    route: Mapping[str, Any]
    """How and when the number of open gates was fixed."""
    gap: GateGap | None
    """Training gates against test gates."""
    resumed_from: int | None
    """The step where an interrupted training went on."""
    closings: int
    """How often a gate closed."""
    reopenings: int
    """How often a closed gate opened again."""
    gates_reopened: int
    """Gates that did so."""
    gates_reopened_and_kept: int
    """Those of them that were open in the end."""


@dataclass(frozen=True, kw_only=True)
class ClosedGates(JsonObject):
    """All gates closed: in a sweep, and in a study without a ratio."""

    step: int
    """When."""
    last_open: str
    """The heads that were open last, in each layer."""
    last_open_kept: int
    """How many these are."""
    scored: str
    """What was scored."""


@dataclass(frozen=True, kw_only=True)
class HubDataset(JsonObject):
    """The data set of a task on the hub."""

    id: str
    """Its name."""
    task: str
    """Its configuration."""


@dataclass(frozen=True, kw_only=True)
class RandomBaseline(JsonObject):
    """Random prunings of the same size, repaired alike."""

    draws: int
    """How many."""
    mean: Number
    """Their mean score."""
    sd: Number
    """Its standard deviation; null for one."""
    worst: Number
    """The worst score."""
    best: Number
    """The best score."""
    scores: tuple[Number, ...]
    """All of them."""
    kept: tuple[str, ...]
    """Their heads in each layer."""
    budget: DataBudget
    """What one of them cost."""
    beaten: bool | None = None
    """Whether the pruned model is better than all of them; not of random pruning itself."""


@dataclass(frozen=True, kw_only=True)
class FreeChoice(JsonObject):
    """As many heads where layers may differ, repaired alike: what uniform layers cost."""

    kept: str
    """How many stay in each layer."""
    score: EvaluationResult
    """Its score."""
    difference: MetricValue
    """The score of uniform layers minus this one, paired on the same rows."""
    lost: str
    """The same in words."""


@dataclass(frozen=True, kw_only=True)
class PruneScores(JsonObject):
    """Scores before and after pruning, on the same rows."""

    task: str
    """The task."""
    dataset: HubDataset | None = None
    """Its data set, of a task of the hub."""
    split: str
    """The rows."""
    metric: str
    """The metric of the score."""
    n: int
    """How many rows."""
    before: EvaluationResult
    """The model with all heads."""
    after: EvaluationResult
    """The pruned model."""
    relative: Number
    """The second score as a share of the first."""
    difference: MetricValue
    """The second score minus the first, paired on the same rows."""
    lost: str
    """The same in words."""
    random: RandomBaseline | None = None
    """Random prunings of the same size."""
    free: FreeChoice | None = None
    """Of a uniform pruning: the same method's choice where layers may differ."""


@dataclass(frozen=True, kw_only=True)
class PruneResult(Result):
    """Heads selected, removed, repaired and scored."""

    model: str
    """The model."""
    method: str
    """The pruning method."""
    ratio: float | Literal["free"] | None
    """The share of heads to remove; free where the method decided, null where it says itself."""
    options: Mapping[str, Any]
    """Options of the method that are not its defaults."""
    seed: int
    """Of everything random."""
    samples: int | None
    """Calibration rows at most."""
    heads: HeadCounts
    """How many heads."""
    parameters: ParameterCounts | None = None
    """How many parameters; not where heads were only gated."""
    repair: tuple[RepairStep, ...]
    """What came after the heads were removed, step by step."""
    learned: LearnedResult | None = None
    """How gates came to their number, where they were trained."""
    budget: DataBudget
    """What it cost in data."""
    scores: PruneScores | None = None
    """Scores before and after; none without a task."""
    mask: Mask
    """The heads that stay, in the numbers of the model that was given; `mask.json` has those of the
    original model."""
    files: str | None = None
    """A sum over the files of the model beside the record: where they were changed since, the same
    command refuses them."""
    rows_text: str = ""
    """`rows` in one sentence."""
    all_closed: ClosedGates | None = None
    """When all gates closed, where they did."""

    def columns(self) -> dict[str, Any]:
        """Heads, the change of the score, and random removals of as many."""
        scores, sizes = self.scores, self.parameters
        lost = None if scores is None else scores.difference
        random = None if scores is None else scores.random
        return {
            "heads": self.heads.before,
            "kept": self.heads.after,
            "pattern": self.heads.kept,
            "full": scores and scores.before.score,
            "difference": lost and lost.value,
            "difference_low": lost and lost.low,
            "difference_high": lost and lost.high,
            "random": random and random.mean,
            "parameters": sizes and sizes.after,
        }

    @property
    def evaluated(self) -> EvaluationResult | None:
        """The score of the pruned model."""
        return self.scores and self.scores.after
