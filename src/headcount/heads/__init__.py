"""The vocabulary: a head, the layout of a model's heads, a mask of kept heads, scores of heads.

All are small frozen values that know nothing of torch. A layer here is one set of attention
weights: a layer that the model runs several times (ALBERT) is one layer with `uses` > 1.

    layout = Layout.of(encoder=[12] * 12)
    mask   = Mask.full(layout).drop([Head("encoder", 0, 3)])
    mask.sparsity                        # 1/144
    Mask.parse("777322", Layout.of(encoder=[8] * 6))
"""

from headcount.heads.counts import read_counts, write_counts
from headcount.heads.layout import STACKS, Head, Layout, Stack
from headcount.heads.mask import Mask
from headcount.heads.scores import Scores

__all__ = ["STACKS", "Head", "Layout", "Mask", "Scores", "Stack", "read_counts", "write_counts"]
