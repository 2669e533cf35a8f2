"""Two checkpoints compared head by head; the run's model is the first of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.base.json_object import JsonObject
from headcount.base.options import defined
from headcount.changes.options import DriftOptions
from headcount.heads import Layout
from headcount.runs.contents import FILE
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.runs.results import ByHead, Number, Result
from headcount.tasks.calibration import InputOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from headcount.runs.run import Run
    from headcount.tasks.encoding import EncodedRows
    from headcount.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class LayerDriftValues(JsonObject):
    """How far one layer moved."""

    stack: str
    """encoder, cross or decoder."""
    layer: int
    """The layer."""
    mean: Number
    """Jensen–Shannon divergence of the attention, mean over heads."""
    mean_stderr: Number
    """Its standard error."""
    max: Number
    """The same of the head that drifts most."""
    max_stderr: Number
    """Its standard error."""
    hidden: Number
    """L2 distance of the layer's outputs; null for cross-attention."""
    hidden_stderr: Number
    """Its standard error."""
    relative: Number
    """The same relative to the length of the first model's outputs."""
    relative_stderr: Number
    """Its standard error."""


@dataclass(frozen=True, kw_only=True)
class DriftValues(JsonObject):
    """How far the attention of heads and the outputs of layers moved."""

    measure: str
    """What is measured."""
    n: int
    """Inputs."""
    attention: ByHead
    """Jensen–Shannon divergence of each head, in bits."""
    stderr: ByHead
    """Standard errors over inputs."""
    layers: tuple[LayerDriftValues, ...]
    """Each layer."""


@dataclass(frozen=True, kw_only=True)
class WeightChangeValues(JsonObject):
    """Mean absolute change of weights."""

    heads: ByHead
    """Of each head's query, key and value weights."""
    q: ByHead
    """Of the query weights alone."""
    k: ByHead
    """Of the key weights alone."""
    v: ByHead
    """Of the value weights alone."""
    layers: Mapping[str, tuple[Number, ...]]
    """Stack -> mean over the heads of each layer."""
    spread: Mapping[str, Number]
    """Stack -> largest minus smallest layer, over their mean; `all` over all stacks."""


@dataclass(frozen=True, kw_only=True)
class CorrelationValues(JsonObject):
    """Pearson's and Spearman's r with 95 % intervals, and the line of the second on the first."""

    pearson: Number
    """Pearson's r."""
    low: Number
    """Its lower end."""
    high: Number
    """Its upper end."""
    p: Number
    """The probability of such an r without a correlation."""
    spearman: Number
    """Spearman's r."""
    spearman_low: Number
    """Its lower end."""
    spearman_high: Number
    """Its upper end."""
    slope: Number
    """The slope of the line."""
    intercept: Number
    """Its value at 0."""
    n: int
    """Heads, or layers."""


@dataclass(frozen=True, kw_only=True)
class RecallValues(JsonObject):
    """How many of the heads that the task needs the pre-training task keeps."""

    at: float
    """The share of its score that the pre-training task keeps."""
    value: Number
    """The recall."""
    chance: Number
    """What as many heads at random would keep."""
    p: Number
    """The probability that heads at random keep as many or more."""
    needed: int
    """Heads that the task needs."""
    kept: int
    """Heads that are kept."""
    both: int
    """Heads that are both."""
    heads: int
    """All heads."""


@dataclass(frozen=True, kw_only=True)
class CountScore(JsonObject):
    """The score with so many of the best heads."""

    kept: int
    """Heads."""
    score: Number
    """The score."""
    relative: Number
    """As a share of that with all heads."""


@dataclass(frozen=True, kw_only=True)
class RankingValues(JsonObject):
    """A task's ranking of the heads."""

    task: str
    """The task."""
    metric: str
    """Its metric."""
    importance: ByHead
    """The importance that the heads are ranked by."""
    scores: tuple[CountScore, ...]
    """Scores, from many heads to few."""


@dataclass(frozen=True, kw_only=True)
class TransferSummary(Result):
    """Two checkpoints compared head by head."""

    pretrained: str
    """The first model."""
    finetuned: str
    """The second model."""
    inputs: str
    """What both read."""
    samples: int | None
    """Inputs at most."""
    seed: int
    """Of the sample of inputs."""
    recall_share: float | None = None
    """The share of the task's score whose heads are recalled."""
    layout: Layout
    """The heads."""
    drift: DriftValues
    """How far attention and outputs moved."""
    weight_change: WeightChangeValues
    """How far weights moved."""
    trends: Mapping[str, Mapping[str, CorrelationValues]]
    """Stack -> attention, hidden and weights: the correlation of the change with depth."""
    importance: Mapping[str, ByHead]
    """Task -> the importance of each head."""
    correlations: Mapping[str, CorrelationValues]
    """Task -> the correlation of drift with importance."""
    recall: tuple[RecallValues, ...] = ()
    """By share of the pre-training score that is kept."""
    rankings: tuple[RankingValues, ...] = ()
    """The rankings behind the recall: the task's, and the pre-training task's."""


@dataclass(frozen=True, kw_only=True)
class TransferOptions(RunKind):
    """What fine-tuning changed, head by head; the run's model is the first of the two."""

    result: ClassVar = TransferSummary
    seeded: ClassVar = "input_options"

    finetuned: str = field(metadata=FILE)
    """The second model, of the same architecture."""
    input_options: InputOptions = field(default_factory=InputOptions)
    """What both read."""
    drift_options: DriftOptions = field(default_factory=DriftOptions)
    """What is asked beside their drift."""

    def execute(self, run: Run, context: RunContext) -> RunOutput:
        """Compare the run's model with the fine-tuned one; `context.report` opens a bar."""
        from headcount.changes.measure import no_bar, transfer_study
        from headcount.models import fingerprint
        from headcount.runs.opening import depends_on
        from headcount.runs.values import told, used_inputs

        models, tasks, tokenizer, rows, name = self._open(run)
        result = transfer_study(
            models,
            tasks,
            rows,
            tokenizer=tokenizer,
            input_options=self.input_options,
            options=self.drift_options,
            name=name,
            bar=context.report or no_bar,
        )
        named = {"pretrained": run.model, "finetuned": self.finetuned}
        result = replace(result, provenance={**result.provenance, **named})
        second = fingerprint.identity(models[1], tokenizer)
        return RunOutput(
            result=TransferSummary.from_json(defined(result.to_json())),
            identity=depends_on(run, models[0], tokenizer, inputs=told(rows), finetuned=second),
            rows={"measured": used_inputs(rows, name)},
            value=result,
        )

    def plan(self, run: Run) -> dict[str, Any]:
        """What would be compared, on what."""
        models, _, _, rows, name = self._open(run)
        return {
            "classes": ", ".join(type(model).__name__ for model in models),
            "inputs": f"{min(len(rows), self.input_options.most)} ({name})",
            "recall": self.drift_options.recall,
        }

    def _open(
        self, run: Run
    ) -> tuple[
        list[PreTrainedModel], list[Task | None], PreTrainedTokenizerBase | None, EncodedRows, str
    ]:
        """(the two models, their tasks, their tokenizer, what both read and what that is)."""
        from headcount.changes.pair import open_pair
        from headcount.runs.opening import name_of, task_of
        from headcount.tasks import TASKS
        from headcount.tasks.inputs import read_inputs
        from headcount.tasks.opening import open_several
        from headcount.tasks.source import Source

        options, before = self.drift_options, None
        if options.pretraining_task is not None:
            before = TASKS[options.pretraining_task](Source(data=options.pretraining_data))
        tasks = [before, None if run.task is None else task_of(run)]
        models, tokenizer = open_several([name_of(run), self.finetuned], run.model_options, tasks)
        open_pair(*models)
        rows, name = read_inputs(models[0], tokenizer, self.input_options, tasks[1])
        return models, tasks, tokenizer, rows, name
