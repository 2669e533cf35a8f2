"""The claims of On Attention Redundancy (NAACL 2021) on layers, tested: RA3 and RA4."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.stats import rankdata

from headcount.likeness.agreement import Matrix, mantel
from headcount.likeness.distances import SENTENCE_BASED, TOKEN_BASED
from headcount.likeness.layers import LayerGap, layer_clusters, layer_gap, layers_of
from headcount.papers.claims import TestedStatistic, tests
from headcount.papers.finished import PaperRuns
from headcount.papers.head_matrices import AFTER, BEFORE, DRAWS, Key, matrices
from headcount.papers.seeds import at_least, more_than, percent
from headcount.statistics import percentiles

SEVEN = (*TOKEN_BASED, *SENTENCE_BASED)
PERMUTATIONS = 999
P = 0.01
CLUSTERINGS = 200
"""Draws of heads behind the interval of the index of clusters, which has few values."""
CLUSTERS = 3
"""As many groups of layers as the paper sees."""
FEW = 8
"""With fewer layers or gaps than this a reader is told that they are few."""


@tests("RA3", "near", "near-random")
def near_layers(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Mean distance against layer gap: of all distances together, of each, after fine-tuning."""
    own, layers = matrices(found, "near", "near-random", "near-tuned"), _layers(found)
    said = "Spearman of layer gap and mean distance"
    rows = [_gap(f"{said}, mean of seven distances", _mean(own, BEFORE, SEVEN), layers)]
    rows += [_gap(f"{said}, {name}", _mean(own, BEFORE, [name]), layers) for name in SEVEN]
    if any(phase == AFTER for phase, _, _ in own):
        what = f"{said}, mean of seven distances, fine-tuned"
        rows.append(_gap(what, _mean(own, AFTER, SEVEN), layers))
    return rows


@tests("RA4", "near", "near-random")
def groups_of_layers(found: PaperRuns) -> Sequence[TestedStatistic]:
    """Clusters of layers by token-based distances, beside the best cut into neighbours."""
    own, layers = matrices(found, "near", "near-random", "near-tuned"), _layers(found)
    said = "adjusted Rand of clusters of layers with the best cut into neighbours"
    tokens = _mean(own, BEFORE, TOKEN_BASED)
    rows = [_groups(f"{said}, token-based", tokens, layers)]
    later = np.flatnonzero(layers > layers.min())
    what = f"{said}, token-based, without the first layer"
    rows.append(_groups(what, tokens[np.ix_(later, later)], layers[later]))
    rows += [_groups(f"{said}, {name}", _mean(own, BEFORE, [name]), layers) for name in TOKEN_BASED]
    if any(phase == AFTER for phase, _, _ in own):
        what = f"{said}, token-based, fine-tuned"
        rows.append(_groups(what, _mean(own, AFTER, TOKEN_BASED), layers))
    what = f"{said}, sentence-based (the paper sees them less clearly there)"
    return [*rows, _groups(what, _mean(own, BEFORE, SENTENCE_BASED), layers)]


def _layers(found: PaperRuns) -> np.ndarray:
    measured = found.runs("near")[0].redundancy()
    return layers_of(measured.layout, measured.stacks[0])


def _mean(own: dict[Key, Matrix], phase: str, names: Iterable[str]) -> Matrix:
    """The mean over all inputs of a phase and some distances."""
    wanted = set(names)
    return np.mean([each for key, each in own.items() if key[0] == phase and key[2] in wanted], 0)


def _gap(what: str, matrix: Matrix, layers: np.ndarray) -> TestedStatistic:
    """Gap and distance go together on heads drawn anew, and heads permuted seldom do as well."""
    gap = layer_gap(matrix, layers, permutations=PERMUTATIONS)
    rng = np.random.default_rng(0)
    low, high, _ = percentiles([_gap_again(matrix, layers, rng) for _ in range(DRAWS)])
    word = more_than(0.0)(gap.spearman, low, high)
    if word == "holds" and gap.p_value >= P:
        word = "undecided"
    r, p = mantel(np.abs(layers[:, None] - layers), matrix, permutations=PERMUTATIONS)
    note = f"p {gap.p_value:.2g}; over pairs of heads r {r:.3f}, Mantel p {p:.2g}{_few(gap)}"
    return TestedStatistic(
        what=what, value=gap.spearman, low=low, high=high, verdict=word, n=len(layers), of="heads",
        note=note,
    )  # fmt: skip


def _gap_again(matrix: Matrix, layers: np.ndarray, rng: np.random.Generator) -> float:
    """Spearman of layer gap and mean distance on heads drawn anew; none meets itself."""
    heads = rng.integers(0, len(layers), len(layers))
    i, j = (heads[side] for side in np.triu_indices(len(heads), 1))
    i, j = i[i != j], j[i != j]
    gaps, place, counts = np.unique(
        np.abs(layers[i] - layers[j]), return_inverse=True, return_counts=True
    )
    means = np.bincount(place, matrix[i, j]) / counts
    if len(gaps) < 2 or not np.ptp(means):  # too few heads were drawn
        return float("nan")
    return float(np.corrcoef(gaps, rankdata(means))[0, 1])  # gaps are in order, as ranks are


def _few(gap: LayerGap) -> str:
    if len(gap.gaps) >= FEW:
        return ""
    return f"; {len(gap.gaps)} gaps of layers are few points to rank"


def _groups(what: str, matrix: Matrix, layers: np.ndarray) -> TestedStatistic:
    """Clusters of layers against the best cut, with the heads of every layer drawn anew."""
    own = layer_clusters(matrix, layers, CLUSTERS)
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(layers == layer) for layer in np.unique(layers)]
    drawn, runs = [], 0
    for _ in range(CLUSTERINGS):
        heads = np.concatenate([rng.choice(each, len(each)) for each in members])
        again = layer_clusters(matrix[np.ix_(heads, heads)], layers, CLUSTERS)
        drawn.append(again.adjusted_rand)
        runs += again.contiguous
    low, high, _ = percentiles(drawn)
    word = at_least(0.8)(own.adjusted_rand, low, high)
    if word == "holds" and not own.contiguous:
        word = "does not hold"
    labels = "-".join(map(str, own.labels))
    said = "contiguous" if own.contiguous else "not contiguous"
    note = f"clusters {labels}, {said}; contiguous in {percent(runs / CLUSTERINGS)} of draws"
    if len(members) < FEW:
        note += f"; {len(members)} layers: one that moves changes the index by much"
    return TestedStatistic(
        what=what, value=own.adjusted_rand, low=low, high=high, verdict=word, n=len(layers),
        of="heads", note=note,
    )  # fmt: skip
