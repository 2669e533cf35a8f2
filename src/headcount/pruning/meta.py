"""Single-shot meta-pruning: a scorer of attention maps, trained once without labels.

It is the SMP that AutoAttention (§4, Table 1) is compared with.

The model is frozen. A convolutional scorer reads a head's attention map and gives it a score. It is
trained so that text representations keep their pairwise similarities when half the heads of some
layers are drawn by their scores and the others closed. It knows nothing of a task: for any task, a
head's score is the mean over inputs, and the best share of every layer stays.

Here a representation is the mean of the last token states, for single texts and for pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.heads import Layout
from headcount.heads.choose import keep_in_parts
from headcount.pruning.counts import parts_of, require_ratio, share_out, size_of
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_model

if TYPE_CHECKING:
    from torch import nn

    from headcount.pruning.scorer import Scorer
    from headcount.tasks.as_rows import Rows


@dataclass(frozen=True, kw_only=True)
@checked
class Meta:
    """The best heads of every layer by a scorer's mean score over the task's rows or inputs."""

    needs: ClassVar = "calibration"
    ratio: ClassVar = "needed"

    scorer: Any = field(default=None, metadata={"typed": Path})
    """File of a scorer; trained on the inputs or the task's rows and written if not there."""
    scorer_steps: int = 200
    """Steps of the scorer's training."""
    scorer_lr: float = 0.5
    """Learning rate of the scorer's training."""
    scorer_seed: int = 0
    """Seed of the scorer's training."""

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """Train the scorer or read it, and score all heads."""
        rows = given.data if given.data is not None else given.inputs
        if rows is None:
            raise UsageError("The method 'meta' scores attention maps: pass a task or inputs.")
        from headcount.pruning.scorer import score_heads

        model = as_model(model, "meta")
        scorer = self._scorer(model, given.inputs if given.inputs is not None else rows)
        scores = score_heads(model, scorer, rows)
        layout = scores.layout
        parts = parts_of(layout, "layer")
        sizes = [size_of(layout, part) for part in parts]

        def decide(ratio: float | None, seed: int) -> Decision:
            counts = share_out(sizes, layout.kept_at(require_ratio("meta", ratio)))
            return Decision(
                mask=keep_in_parts(scores, zip(parts, counts, strict=True)), scores=scores
            )

        return decide

    def _scorer(self, model: nn.Module, inputs: Rows) -> Scorer:
        from headcount.pruning.scorer import Scorer, load_scorer, save_scorer, train_scorer

        if isinstance(self.scorer, Scorer):
            return self.scorer
        path = None if self.scorer is None else Path(str(self.scorer))
        if path is not None and path.is_file():
            return load_scorer(path)
        steps, seed = self.scorer_steps, self.scorer_seed
        scorer, losses = train_scorer(
            model, inputs, steps=steps, learning_rate=self.scorer_lr, seed=seed
        )
        if path is not None:
            save_scorer(scorer, path, {"steps": steps, "losses": losses, "seed": seed})
        return scorer
