"""Spectral clustering of thousands of heads, in seconds where scikit-learn takes many minutes.

    labels = spectral_labels(affinity, 2048, seed=0)

The same steps (normalised Laplacian, one eigenvector a cluster, k-means from the best of several
starts), but k-means knows the embedded heads by their inner products alone: a step costs the square
of the heads, not heads x clusters x dimensions. What is left is one eigendecomposition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
STARTS = 3
STEPS = 300
"""Of one k-means, at most."""
TOLERANCE = 1e-4
"""k-means ends where its centres move by less, as a share of the variance."""


def spectral_labels(affinity: Floats, count: int, seed: int) -> Labels:  # (head, head) -> (head,)
    """The cluster of each head, from 0 to at most `count` - 1."""
    inner = _embedded(affinity, count)
    draw = np.random.RandomState(seed)
    draw.uniform(-1, 1, len(inner))  # scikit-learn's eigensolver takes these: the same starts
    tries = [_k_means(inner, _starts(inner, count, draw)) for _ in range(STARTS)]
    return min(tries, key=lambda found: found[1])[0]


def _embedded(affinity: Floats, count: int) -> Floats:
    """(head, head) inner products of the heads in the space of the first eigenvectors."""
    graph = np.array(affinity, np.float64)
    np.fill_diagonal(graph, 0)
    degree = graph.sum(0)
    scale = np.sqrt(np.where(degree > 0, degree, 1))
    graph /= scale
    graph /= scale[:, None]
    vectors = eigh(graph, driver="evd", overwrite_a=True, check_finite=False)[1]
    points = vectors[:, -count:] / scale[:, None]
    points -= points.mean(0)
    return points @ points.T


def _starts(inner: Floats, count: int, draw: np.random.RandomState) -> Labels:
    """(cluster,) heads to start from: k-means++, the best of a few for each."""
    heads, norms = len(inner), inner.diagonal()
    chosen = [int(draw.choice(heads, p=np.full(heads, 1 / heads)))]
    nearest = np.maximum(norms + norms[chosen[0]] - 2 * inner[chosen[0]], 0)
    for _ in range(1, count):
        reach = np.cumsum(nearest)
        drawn = draw.uniform(size=2 + int(np.log(count))) * reach[-1]
        tried = np.minimum(np.searchsorted(reach, drawn), heads - 1)
        distance = np.maximum(norms[tried][:, None] + norms - 2 * inner[tried], 0)
        distance = np.minimum(nearest, distance)
        best = int(distance.sum(1).argmin())
        nearest = distance[best]
        chosen.append(int(tried[best]))
    return np.array(chosen)


def _k_means(inner: Floats, starts: Labels) -> tuple[Labels, float]:
    """(the cluster of each head, the sum of squared distances to their centres)."""
    heads, count, norms = len(inner), len(starts), inner.diagonal()
    every = np.arange(heads)
    enough = TOLERANCE * norms.sum() / heads / count
    products = inner[starts]  # (cluster, head) of each centre with each head
    squares = norms[starts]  # (cluster,) of each centre with itself
    labels = np.full(heads, -1)
    for _ in range(STEPS):
        before, distance = labels, squares[:, None] - 2 * products
        labels = distance.argmin(0)
        if np.array_equal(labels, before):
            break
        members = _filled(labels, distance[labels, every] + norms, count)
        share = 1 / np.bincount(members, minlength=count)
        mean = csr_array((share[members], (members, every)), (count, heads))
        moved = mean @ inner
        own = share * np.bincount(members, moved[members, every], count)
        across = share * np.bincount(members, products[members, every], count)
        shift = (own + squares - 2 * across).sum()
        products, squares = moved, own
        if shift <= enough:
            labels = (squares[:, None] - 2 * products).argmin(0)
            break
    distance = norms + squares[labels] - 2 * products[labels, every]
    return labels, float(distance.sum())


def _filled(labels: Labels, distance: Floats, count: int) -> Labels:
    """An empty cluster takes the head that is furthest from its centre."""
    members = labels.copy()
    for cluster in np.flatnonzero(np.bincount(labels, minlength=count) == 0):
        several = np.bincount(members, minlength=count)[members] > 1
        members[np.where(several, distance, -np.inf).argmax()] = cluster
        distance = np.where(members == cluster, -np.inf, distance)
    return members
