"""`hc.transfer(pretrained, finetuned, inputs)`: what fine-tuning changed, head by head.

Drift of attention and hidden states, change of weights, and with scores of importance how they go
together with drift. From which papers, and what is averaged over what: see `__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn
from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.base.text import line
from headcount.changes.correlation import Correlation, correlate
from headcount.changes.drift import Drift, drift
from headcount.changes.options import DriftOptions
from headcount.changes.recall import RankedHeads, Recall, rank_heads, recall_curve, score_counts
from headcount.changes.weights import WeightChange, weight_change
from headcount.heads import Layout, Scores
from headcount.models.door import require_model
from headcount.models.find import unwrap
from headcount.tasks import Task
from headcount.tasks.calibration import InputOptions
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.loading import match
from headcount.tasks.rows import labelled_rows
from headcount.training.scoring import Scoring

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from headcount.tasks.as_rows import Data


@dataclass(frozen=True, kw_only=True, eq=False)
class Transfer:
    """Everything that was compared between two checkpoints."""

    layout: Layout
    drift: Drift
    change: WeightChange
    importance: Mapping[str, Scores] = field(default_factory=dict)
    """Name -> importance of the same heads."""
    correlations: Mapping[str, Correlation] = field(default_factory=dict)
    """Name -> that importance (y) against attention drift (x), over heads."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Models, inputs and settings, as plain values."""
    recall: Mapping[float, Recall] = field(default_factory=dict)
    """Relative score of the pre-training task -> recall of the task's heads."""
    ranked: tuple[RankedHeads, ...] = ()
    """The task's and the pre-training task's rankings behind the recall."""

    def __repr__(self) -> str:
        moved, weights = self.drift.attention.values, self.change.total.values
        most = f"largest {max(moved, default=0):.3g} bits and {max(weights, default=0):.3g}"
        names = f"; importance {', '.join(self.importance)}" if self.importance else ""
        about = f"Transfer({len(self.layout)} heads, {self.drift.n} inputs; {most} of weights"
        return line(f"{about}{names})", f"{about})")

    def trends(self) -> dict[str, dict[str, Correlation]]:
        """stack -> how drift and weight change go with depth, over the layers that have them."""
        out: dict[str, dict[str, Correlation]] = {}
        for stack in self.layout.stacks:
            rows = [row for row in self.drift.layers if row.stack == stack.name]
            columns = {
                "attention": [row.mean for row in rows],
                "hidden": [row.hidden for row in rows],
                "weights": self.change.layers[stack.name],
            }
            out[stack.name] = {}
            for name, values in columns.items():
                layers = [layer for layer, value in enumerate(values) if not np.isnan(value)]
                if layers:
                    correlation = correlate(layers, [values[layer] for layer in layers])
                    out[stack.name][name] = correlation
        return out

    def with_recall(
        self, task: RankedHeads, pretraining: RankedHeads, share: float = 0.9
    ) -> Transfer:
        """The same with the recall of the task's heads beside it."""
        curve = recall_curve(task, pretraining, share=share)
        provenance = {**self.provenance, "recall_share": share}
        return replace(self, recall=curve, ranked=(task, pretraining), provenance=provenance)

    def to_json(self) -> dict[str, object]:
        """A plain dict with everything."""
        data: dict[str, object] = {
            **self.provenance,
            "layout": self.layout.to_json(),
            "drift": self.drift.to_json(),
            "weight_change": self.change.to_json(),
            "trends": {
                stack: {name: trend.to_json() for name, trend in trends.items()}
                for stack, trends in self.trends().items()
            },
            "importance": {name: scores.by_layer() for name, scores in self.importance.items()},
            "correlations": {
                name: correlation.to_json() for name, correlation in self.correlations.items()
            },
        }
        if self.recall:
            data["recall"] = [{"at": x, **recall.to_json()} for x, recall in self.recall.items()]
            data["rankings"] = [ranked.to_json() for ranked in self.ranked]
        return data


def transfer(
    pretrained: nn.Module,
    finetuned: nn.Module,
    inputs: Data,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    importance: Scores | Mapping[str, Scores] | None = None,
    samples: int | None = None,
    max_length: int = 128,
    seed: int = 0,
    name: str = "",
    progress: Callable[[int, int | None], object] | None = None,
) -> Transfer:
    """Compare two checkpoints of one architecture, such as before and after fine-tuning.

    `inputs` are texts or pairs of texts (with `tokenizer`), rows of tokens or batches, as in
    `hc.redundancy`; both models read the same. `importance` is one number per head, or several by
    name, as `hc.importance` gives; each is correlated with the drift. `name` says what the inputs
    are; `progress(done, total)` is called after each batch.
    """
    for model in (pretrained, finetuned):
        require_model(unwrap(model), "hc.transfer")
    named = importance if isinstance(importance, Mapping) else {"importance": importance}
    given = {key: scores for key, scores in named.items() if scores is not None}
    change = weight_change(pretrained, finetuned)
    drifts = drift(
        pretrained, finetuned, inputs, tokenizer=tokenizer, limit=samples, max_length=max_length,
        seed=seed, progress=progress,
    )  # fmt: skip
    layout = drifts.attention.layout
    for key, scores in given.items():
        if scores.layout != layout:
            raise UsageError(
                f"The scores '{key}' are of another model: {scores.layout}, not {layout}."
            )
    return Transfer(
        layout=layout,
        drift=drifts,
        change=change,
        importance=given,
        correlations={
            key: correlate(drifts.attention.values, scores.values) for key, scores in given.items()
        },
        provenance={
            "pretrained": _name(pretrained),
            "finetuned": _name(finetuned),
            "inputs": name,
            "samples": samples,
            "seed": seed,
        },
    )


def _name(model: nn.Module) -> str:
    return getattr(model, "name_or_path", "") or type(model).__name__


Bar = Callable[[str], AbstractContextManager[Callable[..., None]]]
"""A sign of life: around some work, and told what is done of how much."""


def no_bar(text: str) -> AbstractContextManager[Callable[..., None]]:
    """Nothing is shown."""
    del text
    return nullcontext(lambda *_: None)


def transfer_study(
    models: Sequence[PreTrainedModel],
    tasks: Sequence[Task | None],
    inputs: EncodedRows,
    *,
    tokenizer: Any,
    input_options: InputOptions,
    options: DriftOptions,
    name: str = "",
    bar: Bar = no_bar,
) -> Transfer:
    """Compare the pre-trained model with the fine-tuned one; each may have a task of its own."""
    kept: dict[str, Any] = {"seed": input_options.seed, "max_length": input_options.max_length}

    def rank(model: PreTrainedModel, task: Task) -> Scores:
        rows = labelled_rows(model, task, tokenizer, limit=options.importance_samples, **kept)
        with bar(f"importance on {task.name}") as progress:
            report = lambda done: progress(done, len(rows))  # noqa: E731
            return rank_heads(model, task, rows, normalize=options.normalize, report=report)

    def scored(model: PreTrainedModel, task: Task, split: str | None) -> RankedHeads:
        scoring = Scoring(split=split, limit=options.limit, **kept)
        with bar(f"scoring {task.name} with fewer and fewer heads"):
            return score_counts(
                model, task, ranks[task.name],
                points=options.points, tokenizer=tokenizer, scoring=scoring,
            )  # fmt: skip

    for model in models:
        match(model, tokenizer)
    (before, after), (first, second) = models, _apart(*tasks)
    pairs = ((after, second), (before, first))
    ranks = {task.name: rank(model, task) for model, task in pairs if task is not None}
    with bar("comparing") as progress:
        result = transfer(
            before, after, inputs, importance=ranks, samples=input_options.most,
            seed=input_options.seed, name=name, progress=progress,
        )  # fmt: skip
    if options.recall and first is not None and second is not None:
        last = scored(after, second, input_options.split), scored(before, first, None)
        result = result.with_recall(*last, options.share)
    return result


def _apart(first: Task | None, second: Task | None) -> tuple[Task | None, Task | None]:
    """The two tasks under two names: one task on other data has the same."""
    if first is not None and second is not None and first.name == second.name:
        first = replace(first, name=f"pre-training {first.name}")
    return first, second
