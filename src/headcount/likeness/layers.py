"""Where redundancy is: distance against layer gap, and layers that cluster.

On Attention Redundancy (NAACL 2021), §5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata
from sklearn.metrics import adjusted_rand_score

from headcount.base.errors import UsageError
from headcount.heads import Layout
from headcount.likeness.agreement import Matrix, as_matrix, correlation


@dataclass(frozen=True, kw_only=True)
class LayerGap:
    """Distance against the number of layers between two heads."""

    gaps: tuple[int, ...]
    means: tuple[float, ...]
    """Mean distance of the heads that far apart."""
    counts: tuple[int, ...]
    spearman: float
    """Rank correlation of gap and mean distance."""
    p_value: float
    """The share of permutations of heads with a correlation as large."""


@dataclass(frozen=True, kw_only=True)
class LayerClusters:
    """Layers in hierarchical clusters, beside the best cut into runs of neighbouring layers."""

    labels: tuple[int, ...]
    """The cluster of each layer, numbered from the first layer on."""
    contiguous: bool
    """Whether every cluster is a run of neighbouring layers."""
    best_cut: tuple[int, ...]
    adjusted_rand: float
    """How far the clusters are the best cut: 1 if they are, about 0 by chance."""


def layers_of(layout: Layout, stack: str) -> np.ndarray:
    """The layer of each head of a stack, in the order of its matrix.

    >>> layers_of(Layout.of(encoder=[2, 3]), "encoder").tolist()
    [0, 0, 1, 1, 1]
    """
    counts = layout[stack].heads
    return np.repeat(np.arange(len(counts)), counts)


def layer_gap(
    matrix: ArrayLike,  # (head, head)
    layers: Sequence[int] | np.ndarray,  # (head,)
    *,
    permutations: int = 999,
    seed: int = 0,
) -> LayerGap:
    """Whether heads of near layers are nearer, tested by permuting the heads."""
    values, layers = _with_layers(matrix, layers)
    if len(np.unique(layers)) < 3:
        raise UsageError("Distance against layer gap takes at least three layers with heads.")
    rows, columns = np.triu_indices(len(values), 1)
    gaps, group, counts = np.unique(
        np.abs(layers[rows] - layers[columns]), return_inverse=True, return_counts=True
    )
    ranks = rankdata(gaps)

    def means(order: np.ndarray) -> np.ndarray:
        return np.bincount(group, values[order[rows], order[columns]]) / counts

    rng = np.random.default_rng(seed)
    observed = means(np.arange(len(values)))
    spearman = correlation(ranks, rankdata(observed))
    as_large = 0
    for _ in range(permutations):
        permuted = rankdata(means(rng.permutation(len(values))))
        as_large += correlation(ranks, permuted) >= spearman - 1e-12
    return LayerGap(
        gaps=tuple(gaps.tolist()),
        means=tuple(observed.tolist()),
        counts=tuple(counts.tolist()),
        spearman=spearman,
        p_value=(1 + as_large) / (1 + permutations),
    )


def layer_distances(matrix: ArrayLike, layers: Sequence[int] | np.ndarray) -> Matrix:
    """Mean distance of the heads of every two layers; within a layer, of different heads."""
    values, layers = _with_layers(matrix, layers)
    _, layer, counts = np.unique(layers, return_inverse=True, return_counts=True)
    member = (layer[:, None] == np.arange(len(counts))).astype(np.float64)
    number = np.outer(counts, counts) - np.diag(counts)
    return member.T @ values @ member / np.maximum(number, 1)


def layer_clusters(
    matrix: ArrayLike, layers: Sequence[int] | np.ndarray, count: int = 3
) -> LayerClusters:
    """Layers clustered by the mean distance of their heads (average linkage) into `count`."""
    apart = layer_distances(matrix, layers)
    if not 1 <= count <= len(apart):
        raise UsageError(f"{len(apart)} layers cannot make {count} clusters.")
    np.fill_diagonal(apart, 0)
    if len(apart) == 1:
        return LayerClusters(labels=(0,), contiguous=True, best_cut=(0,), adjusted_rand=1.0)
    tree = linkage(squareform(apart, checks=False), "average")
    labels = _from_the_first(fcluster(tree, count, "maxclust"))
    cut = best_cut(apart, int(labels.max()) + 1)
    return LayerClusters(
        labels=tuple(labels.tolist()),
        contiguous=bool((np.diff(labels) >= 0).all()),
        best_cut=tuple(cut.tolist()),
        adjusted_rand=float(adjusted_rand_score(cut, labels)),
    )


def best_cut(apart: Matrix, count: int) -> np.ndarray:  # (layer, layer) -> (layer,)
    """The cut into `count` runs of layers with the least distance within them.

    A run of n layers costs the sum of its distances / n; dynamic programming finds the optimum.
    """
    n = len(apart)
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = apart.cumsum(0).cumsum(1)

    def cost(start: int, end: int) -> float:
        total = sums[end, end] - 2 * sums[start, end] + sums[start, start]
        return total / 2 / (end - start)

    best = np.full((count + 1, n + 1), np.inf)
    best[0, 0] = 0
    start_of = np.zeros((count + 1, n + 1), int)
    for runs in range(1, count + 1):
        for end in range(runs, n + 1):
            costs = [best[runs - 1, s] + cost(s, end) for s in range(runs - 1, end)]
            start_of[runs, end] = runs - 1 + int(np.argmin(costs))
            best[runs, end] = min(costs)
    labels = np.empty(n, int)
    end = n
    for runs in range(count, 0, -1):
        labels[start_of[runs, end] : end] = runs - 1
        end = start_of[runs, end]
    return labels


def _from_the_first(labels: np.ndarray) -> np.ndarray:
    """Clusters numbered in the order in which their first layers come."""
    _, first, cluster = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[cluster]


def _with_layers(
    matrix: ArrayLike, layers: Sequence[int] | np.ndarray
) -> tuple[Matrix, np.ndarray]:
    values, numbers = as_matrix(matrix), np.asarray(layers)
    if numbers.shape != (len(values),):
        raise UsageError(f"{len(values)} heads, but layers for {numbers.size}.")
    return values, numbers
