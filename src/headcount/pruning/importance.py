"""The heads with the least effect on the loss go: by E |∂L/∂ξ|, in one shot or step by step.

Why Can You Lay Off Heads?, §3.2 and §3.3.

Iterative: a `step` of the heads goes, the importance of the others is estimated again without
them, and so on. Gradients do not depend on the ratio, so all ratios share the estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.heads import Layout, Mask, Scores
from headcount.pruning.counts import require_ratio
from headcount.pruning.greedy import GreedyPath
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_layout, as_model

if TYPE_CHECKING:
    from torch import nn

    from headcount.tasks.as_rows import Rows


@dataclass(frozen=True, kw_only=True)
@checked
class Importance:
    """Keep the highest scores, estimated on rows with labels, or given.

    Scores are normalised by the ℓ1 norm of their layer where the model has one stack, as the paper
    found best, and not at all where it has several: there it would make the stacks alike, which
    they are not (measured on a translator with half its heads: BLEU 29 without, 9 with).

    >>> given = Scores(Layout.of(encoder=[2, 2]), (1, 4, 3, 2))
    >>> Importance(scores=given).prepare(given.layout, MethodInputs())(0.5, 0).mask.pattern
    '11'
    """

    needs: ClassVar = "labels"
    ratio: ClassVar = "needed"

    normalize: Literal["none", "l1", "l2"] | None = None
    """Divide by the layer's norm; l1 for models with one stack when left out."""
    step: float | None = None
    """Share of heads that goes between two estimates; one estimate when left out."""
    scores: Any = field(default=None, metadata={"typed": Path})
    """Scores of the heads instead of an estimate: `hc.Scores`, or their JSON file."""

    def __post_init__(self) -> None:
        if self.normalize not in (None, "none", "l1", "l2"):
            from headcount.sensitivity.options import require_norm

            require_norm(self.normalize)
        if self.scores is not None and self.step is not None:
            raise UsageError("Given scores cannot be estimated again: leave out step.")
        if self.step is not None and not 0 < self.step <= 1:
            raise UsageError(
                f"The step is a share of the heads, above 0 and at most 1, not {self.step}."
            )

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """Estimate the scores once, or as often as there are steps."""
        layout, data = as_layout(model), given.data

        def kept(ratio: float | None) -> int:
            return layout.kept_at(require_ratio("importance", ratio))

        if self.scores is not None:
            scores = _read(self.scores, layout)
            return lambda ratio, seed: Decision.best(scores, kept(ratio))
        if data is None:
            raise UsageError("The method 'importance' needs data with labels: pass a task.")
        from headcount.tasks.encoding import EncodedRows

        if isinstance(data, Iterator):
            data = list(data)  # it is gone through more than once
        if not isinstance(data, EncodedRows) and not hasattr(data, "__iter__"):
            raise UsageError(f"Data are rows or batches, not {type(data).__name__}.")
        normalize = self.normalize or ("l1" if len(layout.stacks) == 1 else "none")
        size = len(layout) if self.step is None else int(len(layout) * self.step)
        model = as_model(model, "importance")
        path = GreedyPath(layout, lambda mask: _without(model, data, mask, normalize), size)
        return lambda ratio, seed: path.keep(kept(ratio))


def _read(scores: Scores | str | Path, layout: Layout) -> Scores:
    if not isinstance(scores, Scores):
        from headcount.base.files import read_json

        scores = Scores.from_json(read_json(scores, "file of scores"))
    if scores.layout != layout:
        raise UsageError(f"The scores are of another model: {scores.layout}, not {layout}.")
    return scores


def _without(model: nn.Module, data: Rows, mask: Mask, normalize: str) -> Scores:
    """Importance without the heads that are gone."""
    from headcount.sensitivity.gradients import importance, layer_norms

    scores = importance(model, data, mask=mask)
    kept = tuple(value if head in mask else 0.0 for head, value in scores.items())
    norms = layer_norms(Scores(mask.layout, kept), normalize)
    values = [value / norm for value, norm in zip(scores.values, norms, strict=True)]
    return Scores(mask.layout, tuple(values))
