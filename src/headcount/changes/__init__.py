"""Two checkpoints of one architecture compared: what fine-tuning changed, head by head.

All but the weight change is from Why Can You Lay Off Heads?: drift from §5, its relation to
importance from appendix E, recall from §4.

Attention drift: the Jensen–Shannon divergence between a head's attention in the two models,
token by token on the same inputs. It is the divergence, in bits (base 2, from 0 to 1, as Lin
defined it and as the paper's figure uses it), not the distance: `redundancy`'s `js` is its square
root. A head's value is the mean over the tokens that ask (padding is neither asked nor looked at),
then over the runs of a shared layer, then over inputs; its standard error is over inputs. The
first token of causal attention has one place to look at, so it counts with 0. A layer's mean is
over its heads, its max is the value of the head that drifts most.

Hidden drift: the Euclidean length (L2) of the difference between what a layer puts out in the
two models, mean over tokens, runs of a shared layer, and inputs. It is what the layer itself puts
out, before a final norm of the whole stack. Beside it stands the same relative to the length of
the first model's vector, because vectors grow with depth in many models.

Weight change (On the weak link between importance and prunability, EMNLP 2020, §3.3, Fig. 2): the
mean absolute change of the weights (not biases) of a head's query, key and value projections. In
grouped-query attention the keys and values of a group count for each of its heads. The spread is
(largest − smallest layer mean) / mean of the layer means.

Drift against importance: Pearson's and Spearman's correlation over heads, with 95 % intervals
that take heads for independent draws, and the line importance = slope · drift + intercept.

Recall: of the heads a task needs for 90 % of its score, the share that is left when the
pre-trained model is pruned to x % of its own score; chance is the share of all heads that is left.

How a model does with its lowest layers frozen (§5) is `headcount train --freeze`.
"""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.changes.correlation import Correlation as Correlation
    from headcount.changes.correlation import correlate as correlate
    from headcount.changes.maps import AttentionMaps as AttentionMaps
    from headcount.changes.measure import Transfer as Transfer
    from headcount.changes.measure import transfer as transfer
    from headcount.changes.options import DriftOptions as DriftOptions
    from headcount.changes.options import Sentence as Sentence
    from headcount.changes.recall import Recall as Recall
    from headcount.changes.sentence import attention as attention
    from headcount.changes.weights import WeightChange as WeightChange
    from headcount.changes.weights import weight_change as weight_change

__getattr__, __dir__ = lazily(__name__)
