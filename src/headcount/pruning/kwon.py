"""The heads whose masking changes the loss least go, by the Fisher information of the mask.

Kwon, Kim, Mahoney, Hassoun, Keutzer and Gholami, A Fast Post-Training Pruning Framework for
Transformers, NeurIPS 2022. With g the gradient of an example's loss by the heads' gates m,

    F = E[g gᵀ],   loss of a mask ≈ ½ (1 - m)ᵀ F (1 - m)

The search takes F as diagonal and keeps the largest; then heads are exchanged inside a layer, the
pair that lowers the loss most first, with the layer's own block of F, until none does. Where heads
share keys and values they are not exchanged. The paper's last step, a least squares, is recovery.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.heads import Head, Layout, Mask, Scores
from headcount.pruning.counts import require_ratio
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_layout, as_model

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
@checked
class Kwon:
    """Keep the heads with the largest Fisher information, exchanged within layers."""

    needs: ClassVar = "labels"
    ratio: ClassVar = "needed"

    exchange: bool = True
    """Exchange kept and removed heads inside a layer afterwards."""

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """One pass over the rows, with labels."""
        if given.data is None:
            raise UsageError("The method 'kwon' needs data with labels: pass a task.")
        layout = as_layout(model)
        fisher = mask_fisher(as_model(model, "kwon"), layout, given)
        scores = Scores(layout, tuple(fisher.diagonal().tolist()))

        def decide(ratio: float | None, seed: int) -> Decision:
            best = Decision.best(scores, layout.kept_at(require_ratio("kwon", ratio)))
            return Decision(mask=exchanged(best.mask, fisher)) if self.exchange else best

        return decide


def mask_fisher(
    model: nn.Module, layout: Layout, given: MethodInputs
) -> np.ndarray:  # (head, head)
    """E[g gᵀ] over examples."""
    from headcount.models.find import unwrap
    from headcount.sensitivity.gradients import gate_gradients
    from headcount.tasks.kinds import task_kind

    assert given.data is not None
    name = getattr(given.data, "kind", None)
    kind = None if name is None else task_kind(name)
    sums, n = np.zeros((len(layout), len(layout))), 0
    with closing(gate_gradients(unwrap(model), layout, given.data, kind=kind)) as batches:
        for _, gradients, _ in batches:
            g = gradients.cpu().numpy()
            sums += g.T @ g
            n += len(g)
    if not n or not np.isfinite(sums).all():
        raise UsageError("The method 'kwon' has no gradients: no example has a label that counts.")
    return sums / n


def exchanged(mask: Mask, fisher: np.ndarray) -> Mask:
    """The mask after exchanges inside its layers, none of which could lower the loss further."""
    layout, kept = mask.layout, set(mask)
    numbers = {head: number for number, head in enumerate(layout)}
    for stack, layer, heads in layout.layers():
        if layout[stack].groups[layer] != heads:
            continue
        members = [Head(stack, layer, index) for index in range(heads)]
        order = [numbers[head] for head in members]
        block = fisher[np.ix_(order, order)]
        gone = np.array([head not in kept for head in members], dtype=float)
        while 0 < gone.sum() < heads:
            removed, stays = np.flatnonzero(gone), np.flatnonzero(gone == 0)
            # (1 - m)ᵀ F (1 - m) with removed i back and kept j gone instead
            slope, diagonal = block @ gone, block.diagonal()
            change = (diagonal[removed] - 2 * slope[removed])[:, None]
            change = change + (diagonal[stays] + 2 * slope[stays])[None]
            change = change - 2 * block[np.ix_(removed, stays)]
            i, j = np.unravel_index(int(change.argmin()), change.shape)
            if change[i, j] >= -1e-12 * max(float(gone @ block @ gone), 1e-300):
                break
            gone[removed[i]], gone[stays[j]] = 0.0, 1.0
        kept -= set(members)
        kept |= {head for head, out in zip(members, gone, strict=True) if not out}
    return Mask(layout, frozenset(kept))
