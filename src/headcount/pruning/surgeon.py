"""The head surgeon: second-order selection of heads (a structured Optimal Brain Surgeon).

One pass over the inputs gives, per layer, A = E[z zᵀ] over tokens, z all heads' outputs (and a 1
where the output projection has a bias), and G = E[g gᵀ], g the gradient of the loss at the
attention output, with labels drawn from the model's own prediction: the true Fisher, which needs
no labels. Removing head h and solving the other rows of the projection W again costs

    c_h = tr(G W_hᵀ [(A⁻¹)_hh]⁻¹ W_h)

for a token, and this times the layer's tokens for the loss, stacks have different numbers of them,
and times how far the tokens of an example act together: with s_ht = g_t · W_h z_ht the effect of a
head's gate at a token, Σ_h E[(Σ_t s_ht)²] / Σ_h E[Σ_t s_ht²]. Below an average over tokens, as
embeddings are, errors of all tokens add up, the more the nearer the layer is to it. Where tokens
are predicted one by one, as in language modelling, this factor is 1.
The cheapest head goes, W and A⁻¹ are updated (Schur complement), and so on to the last head: one
greedy path a layer. Costs along a path are made non-decreasing, the paths of all layers merged by
cost, and end where the requested number is reached, so one pass serves every ratio. Made to be
followed by recovery, which does solve the rows again.

Where keys and values are what is to be saved, the same path runs over their groups: all heads of a
group go at once, with the Schur complement of all their rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.heads import Head, Layout, Scores
from headcount.pruning.counts import Place, require_ratio
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_layout, as_model

if TYPE_CHECKING:
    from torch import nn

    from headcount.tasks.as_rows import Rows


@dataclass(frozen=True, kw_only=True)
@checked
class Surgeon:
    """Keep the heads whose removal costs most, the others having been solved again."""

    needs: ClassVar = "calibration"
    ratio: ClassVar = "needed"

    label_seed: int = 0
    """Seed of the labels that are drawn from the model's own prediction."""

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """One pass over the rows, which may be without labels."""
        if given.calibration is None:
            raise UsageError("The method 'surgeon' needs calibration rows: pass a task or inputs.")
        layout = as_layout(model)
        removed = paths(as_model(model, "surgeon"), given.calibration, self.label_seed)
        scores = Scores(layout, merged(layout, removed))

        def decide(ratio: float | None, seed: int) -> Decision:
            return Decision.best(scores, layout.kept_at(require_ratio("surgeon", ratio)))

        return decide


def paths(
    model: nn.Module, data: Rows, seed: int = 0, *, groups: bool = False
) -> dict[Place, tuple[list[int], np.ndarray]]:
    """For each layer its heads, the first to go first, and what the removal of each costs then.

    With `groups` its key-value groups, each with all its heads.
    """
    from headcount.pruning.second_order import collect, greedy_path

    layers, done = collect(model, data, seed=seed), {}
    for key in list(layers):
        sums = layers.pop(key)
        path, costs = greedy_path(*sums.normal(), sums.groups if groups else sums.heads)
        # the loss is of all tokens of an example: an encoder of sound has hundreds for each word,
        # and where their mean is the answer they add up
        done[key] = path, costs * sums.tokens * sums.coherence
    return done


def merged(layout: Layout, removed: dict[Place, tuple[list[int], np.ndarray]]) -> tuple[float, ...]:
    """When each head goes, from 0 for the first, over the merged paths of all layers."""
    steps: list[tuple[float, int, Head]] = []
    for (stack, layer), (path, costs) in removed.items():
        raised = np.maximum.accumulate(costs) if len(costs) else costs
        steps += [
            (float(cost), step, Head(stack, layer, head))
            for step, (head, cost) in enumerate(zip(path, raised, strict=True))
        ]
    # a layer's heads go in the order of its path, also where costs are equal
    ranks = {head: rank for rank, (_, _, head) in enumerate(sorted(steps))}
    return tuple(float(ranks.get(head, -1)) for head in layout)
