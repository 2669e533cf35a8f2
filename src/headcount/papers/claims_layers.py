"""The claims of On Attention Redundancy (NAACL 2021) on layers, tested: RA3 and RA4."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from scipy.stats import rankdata

from headcount.likeness.agreement import Matrix, mantel
from headcount.likeness.distances import SENTENCE_BASED, TOKEN_BASED
from headcount.likeness.layers import layer_clusters, layer_gap, layers_of
from headcount.papers.claims import Rule, Statistic, Word, tests
from headcount.papers.estimates import SampleSize, at_least, more_than, percent, statistic
from headcount.papers.finished import PaperRuns
from headcount.papers.head_matrices import AFTER, BEFORE, RESAMPLES, SEVEN, Key, matrices
from headcount.statistics import percentiles

PERMUTATIONS = 999
P = 0.01
CLUSTERINGS = 200
"""Resamples of heads behind the interval of the index of clusters, which has few values."""
CLUSTERS = 3
"""As many groups of layers as the paper sees."""
FEW = 8
"""With fewer layers or gaps than this the note says that they are few."""


@tests("RA3", "near", "near-random")
def near_layers(finished: PaperRuns) -> Sequence[Statistic]:
    """Mean distance against layer gap: of all distances together, of each, after fine-tuning."""
    measured, layers = _measured(finished)
    what = "Spearman of layer gap and mean distance"
    rows = [_gap(f"{what}, mean of seven distances", _mean(measured, BEFORE, SEVEN), layers)]
    rows += [_gap(f"{what}, {name}", _mean(measured, BEFORE, [name]), layers) for name in SEVEN]
    if any(phase == AFTER for phase, _, _ in measured):
        tuned = _mean(measured, AFTER, SEVEN)
        rows.append(_gap(f"{what}, mean of seven distances, fine-tuned", tuned, layers))
    return rows


@tests("RA4", "near", "near-random")
def groups_of_layers(finished: PaperRuns) -> Sequence[Statistic]:
    """Clusters of layers by token-based distances, beside the best cut into neighbours."""
    measured, layers = _measured(finished)
    what = "adjusted Rand of clusters of layers with the best cut into neighbours"
    tokens = _mean(measured, BEFORE, TOKEN_BASED)
    later = np.flatnonzero(layers > layers.min())
    rows = [
        _groups(f"{what}, token-based", tokens, layers),
        _groups(
            f"{what}, token-based, without the first layer",
            tokens[np.ix_(later, later)],
            layers[later],
        ),
    ]
    for name in TOKEN_BASED:
        rows.append(_groups(f"{what}, {name}", _mean(measured, BEFORE, [name]), layers))
    if any(phase == AFTER for phase, _, _ in measured):
        tuned = _mean(measured, AFTER, TOKEN_BASED)
        rows.append(_groups(f"{what}, token-based, fine-tuned", tuned, layers))
    what = f"{what}, sentence-based (the paper sees them less clearly there)"
    return [*rows, _groups(what, _mean(measured, BEFORE, SENTENCE_BASED), layers)]


def _measured(finished: PaperRuns) -> tuple[dict[Key, Matrix], np.ndarray]:
    """All matrices, and the layer of every head."""
    first = finished.runs("near")[0].redundancy()
    measured = matrices(finished, "near", "near-random", "near-tuned")
    return measured, layers_of(first.layout, first.stacks[0])


def _mean(measured: Mapping[Key, Matrix], phase: str, names: Collection[str]) -> Matrix:
    """The mean over all inputs of a phase and some distances."""
    wanted = [key for key in measured if key[0] == phase and key[2] in names]
    return np.mean([measured[key] for key in wanted], 0)


def _gap(what: str, matrix: Matrix, layers: np.ndarray) -> Statistic:
    """Gap and distance go together on resampled heads, and heads permuted seldom do as well."""
    gap = layer_gap(matrix, layers, permutations=PERMUTATIONS)
    rng = np.random.default_rng(0)
    low, high, _ = percentiles([_resampled_gap(matrix, layers, rng) for _ in range(RESAMPLES)])
    r, p = mantel(np.abs(layers[:, None] - layers), matrix, permutations=PERMUTATIONS)
    note = f"p {gap.p_value:.2g}; over pairs of heads r {r:.3f}, Mantel p {p:.2g}"
    if len(gap.gaps) < FEW:
        note += f"; {len(gap.gaps)} gaps of layers are few points to rank"

    def decide(value: float, low: float, high: float) -> Word:
        word = more_than(0.0)(value, low, high)
        return "undecided" if word == "holds" and gap.p_value >= P else word

    rule = Rule(0.0, decide)
    return statistic(what, (gap.spearman, low, high), rule, SampleSize(len(layers), "heads"), note)


def _resampled_gap(matrix: Matrix, layers: np.ndarray, rng: np.random.Generator) -> float:
    """Spearman of layer gap and mean distance on resampled heads; none meets itself."""
    heads = rng.integers(0, len(layers), len(layers))
    i, j = (heads[side] for side in np.triu_indices(len(heads), 1))
    i, j = i[i != j], j[i != j]
    gaps, index, counts = np.unique(
        np.abs(layers[i] - layers[j]), return_inverse=True, return_counts=True
    )
    means = np.bincount(index, matrix[i, j]) / counts
    if len(gaps) < 2 or not np.ptp(means):  # too few heads were drawn
        return float("nan")
    return float(np.corrcoef(gaps, rankdata(means))[0, 1])  # gaps are in order, as ranks are


def _groups(what: str, matrix: Matrix, layers: np.ndarray) -> Statistic:
    """Clusters of layers against the best cut, with the heads of every layer resampled."""
    clusters = layer_clusters(matrix, layers, CLUSTERS)
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(layers == layer) for layer in np.unique(layers)]
    resampled = []
    for _ in range(CLUSTERINGS):
        heads = np.concatenate([rng.choice(layer, len(layer)) for layer in members])
        resampled.append(layer_clusters(matrix[np.ix_(heads, heads)], layers, CLUSTERS))
    low, high, _ = percentiles([again.adjusted_rand for again in resampled])
    contiguous = percent(sum(again.contiguous for again in resampled) / CLUSTERINGS)
    labels = "-".join(map(str, clusters.labels))
    kind = "contiguous" if clusters.contiguous else "not contiguous"
    note = f"clusters {labels}, {kind}; contiguous in {contiguous} of draws"
    if len(members) < FEW:
        note += f"; {len(members)} layers: one that moves changes the index by much"

    def decide(value: float, low: float, high: float) -> Word:
        word = at_least(0.8)(value, low, high)
        return "does not hold" if word == "holds" and not clusters.contiguous else word

    rule = Rule(0.8, decide)
    size = SampleSize(len(layers), "heads")
    return statistic(what, (clusters.adjusted_rand, low, high), rule, size, note)
