"""Scores of heads from gradients: how much each head affects the loss.

Why Can You Lay Off Heads?, §3.2.

The importance of head h is I_h = E |∂L/∂ξ_h|, with ξ_h a gate of 1 on the head's output.

What is divided by what. L is the loss of one example: the sum over its labels that count (one
class, one score, or the tokens that are asked for), divided by how many those are. The absolute
value is taken per example, then the sum over examples is divided by their number; examples with
no label that counts are left out. Other code divides by the number of tokens instead, or takes
the absolute value of a whole batch's gradient: the first only scales all scores, the second lets
examples cancel each other.

Shared layers (ALBERT) have one gate that acts at every depth, so the gradients of the depths are
added before the absolute value: E |Σ_l ∂L/∂ξ⁽ˡ⁾|, one score per shared head.

The last encoder layer of a classifier: the classifier reads [CLS] alone, so of everything a head
of the last layer writes only what it writes at [CLS] has a gradient, while in all layers below
every token passes something on to [CLS]. The last layer's scores are sums over one position, the
others' over all, and they are not on one scale: normalisation per layer makes layers comparable.
ℓ1 or ℓ2: every score is divided by the sum of its layer's scores, or by the root of the sum of
their squares; standard errors are divided by the same number.
"""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.sensitivity.gradients import ImportanceResult as ImportanceResult
    from headcount.sensitivity.gradients import example_losses as example_losses
    from headcount.sensitivity.gradients import importance as importance
    from headcount.sensitivity.options import GradientOptions as GradientOptions
    from headcount.sensitivity.options import require_norm as require_norm

__getattr__, __dir__ = lazily(__name__)
