"""Clusters of similar heads from a redundancy matrix alone, and one head to represent each.

    labels = cluster(matrix, 72)                    # or as many clusters as there seem to be
    kept = representatives(matrix, labels)

On Attention Redundancy (NAACL 2021), section 7.1. For a number of clusters the clustering is
spectral; without one, affinity propagation or HDBSCAN finds the number itself. Above `EXACT` heads
the spectral clustering is `spectral_labels`, above `LARGE` affinity propagation has fewer steps,
and above `MOST` nothing is clustered.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from sklearn.cluster import HDBSCAN, AffinityPropagation, SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_samples

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.likeness.agreement import Matrix, as_matrix

COUNTERS = ("affinity", "hdbscan")
"""Clusterings that find the number of clusters themselves."""
REPRESENTATIVES = ("silhouette", "medoid")
EXACT = 512
"""Heads of a stack that scikit-learn clusters in a second or two; 1,536 take it half a minute."""
LARGE = 1536
"""Heads of a stack above which the time is noted, and affinity propagation has fewer steps."""
MOST = 8192
"""Heads of a stack that are clustered at all: time goes with the cube of the heads, memory with the
square, four matrices of 0.5 GB here."""
MESSAGES = 3000
"""Steps of affinity propagation, at most; for more than `LARGE` heads as many as take as long."""
SECONDS = {"spectral": 20, "affinity": 90}
"""What 4,096 heads take on one core, at most about; affinity propagation has no more for others."""

Labels = NDArray[np.intp]
STARTS = 3
STEPS = 300
"""Of one k-means, at most."""
TOLERANCE = 1e-4
"""k-means ends where its centres move by less, as a share of the variance."""

talk = logging.getLogger("headcount")


def mean_matrix(matrices: Iterable[ArrayLike]) -> Matrix:
    """The mean of several redundancy matrices of the same heads."""
    arrays = [as_matrix(matrix) for matrix in matrices]
    if not arrays:
        raise UsageError("The mean of no redundancy matrix is requested.")
    if len({array.shape for array in arrays}) > 1:
        sizes = ", ".join(str(len(array)) for array in arrays)
        raise UsageError(f"Matrices of different numbers of heads have no mean: {sizes}.")
    return np.mean(arrays, axis=0)


def cluster(
    matrix: ArrayLike,  # (head, head) -> (head,)
    count: int | None = None,
    *,
    counter: str = "affinity",
    seed: int = 0,
) -> np.ndarray:
    """The cluster of each head: exactly `count` of them, or as many as the `counter` finds."""
    values = as_matrix(matrix)
    if counter not in COUNTERS:
        raise unknown(f"There is no clustering '{counter}'", counter, COUNTERS)
    if count is None:
        if len(values) < 3 or not values.any():
            return np.zeros(len(values), int)
        return _affinity(values, seed) if counter == "affinity" else _hdbscan(values)
    if not 0 <= count <= len(values):
        raise UsageError(f"{len(values)} heads cannot make {count} clusters.")
    if count == len(values):
        return np.arange(count)
    if count <= 1:
        return np.zeros(len(values), int) if count else np.full(len(values), -1)
    return _spectral(values, count, seed)


def representatives(matrix: ArrayLike, labels: np.ndarray, *, by: str = "silhouette") -> list[int]:
    """One head of each cluster, in order: of the best silhouette, or the medoid; -1 is none."""
    if by not in REPRESENTATIVES:
        raise unknown(f"There is no representative '{by}' of a cluster", by, REPRESENTATIVES)
    values = as_matrix(matrix)
    names = [name for name in np.unique(labels) if name >= 0]
    if by == "silhouette" and 1 < len(names) < len(values):
        worth = np.asarray(silhouette_samples(values, labels, metric="precomputed"))
    else:  # one cluster, or one for each head: a silhouette says nothing
        worth = np.array([-values[i, labels == labels[i]].sum() for i in range(len(values))])
    members = [np.flatnonzero(labels == name) for name in names]
    return sorted(int(group[np.argmax(worth[group])]) for group in members)


def _say_cost(heads: int, seconds: float) -> None:
    """Say what thousands of heads take, and refuse what would not end."""
    if heads > MOST:
        raise UsageError(
            f"{heads:,} heads of one stack are too many to cluster: {MOST:,} take minutes, and the "
            "time grows with the cube of their number. Use another method, such as importance."
        )
    if heads > LARGE:
        talk.warning(
            "Clustering %s heads takes up to %.0f s of one core.", f"{heads:,}", max(1, seconds)
        )


def _spectral(values: Matrix, count: int, seed: int) -> np.ndarray:
    """Spectral clustering with a Gaussian affinity as wide as the median distance."""
    _say_cost(len(values), SECONDS["spectral"] * (len(values) / 4096) ** 3)
    width = np.median(values[np.triu_indices(len(values), 1)]) or 1.0
    affinity = np.exp(-((values / width) ** 2) / 2)
    if len(values) > EXACT:
        return _split(values, spectral_labels(affinity, count, seed), count)
    model = SpectralClustering(count, affinity="precomputed", random_state=seed)
    with warnings.catch_warnings():
        # identical heads leave k-means with fewer places than clusters; `_split` makes up for it
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = model.fit_predict(affinity)
    return _split(values, labels, count)


def _split(values: Matrix, labels: np.ndarray, count: int) -> np.ndarray:
    """Take the outermost head from the widest cluster until there are `count` clusters."""
    labels = np.unique(labels, return_inverse=True)[1]
    groups = [np.flatnonzero(labels == name) for name in range(labels.max() + 1)]
    widths = [_width(values, group) for group in groups]
    while len(groups) < count:
        widest = int(np.argmax(widths))
        group = groups[widest]
        away = group[np.argmax(values[np.ix_(group, group)].sum(1))]
        labels[away] = len(groups)
        groups[widest] = group[group != away]
        widths[widest] = _width(values, groups[widest])
        groups.append(np.array([away]))
        widths.append(-1.0)
    return labels


def _width(values: Matrix, group: np.ndarray) -> float:
    """The largest distance in a cluster; less than 0 for a head alone, which cannot be split."""
    return values[np.ix_(group, group)].max() if len(group) > 1 else -1.0


def _affinity(values: Matrix, seed: int) -> np.ndarray:
    _say_cost(len(values), SECONDS["affinity"])
    steps = int(MESSAGES * min(1, (LARGE / len(values)) ** 2))
    # damped messages change slowly: after the usual 15 steps without a change they still may
    model = AffinityPropagation(
        affinity="precomputed", damping=0.9, convergence_iter=50, max_iter=steps, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = model.fit_predict(-(values**2))
    if (labels < 0).any():
        raise UsageError(
            f"Affinity propagation did not settle on a number of clusters in {steps:,} steps. Give "
            "a ratio, or use 'hdbscan'."
        )
    return labels


def _hdbscan(values: Matrix) -> np.ndarray:
    """HDBSCAN; a head that it puts in no cluster is like no other and makes its own."""
    model = HDBSCAN(min_cluster_size=2, metric="precomputed", copy=True)  # pyright: ignore
    labels = model.fit_predict(values)
    alone = np.flatnonzero(labels < 0)
    labels[alone] = labels.max() + 1 + np.arange(len(alone))
    return labels


def spectral_labels(affinity: Matrix, count: int, seed: int) -> Labels:  # (head, head) -> (head,)
    """The cluster of each head, from 0 to at most `count` - 1, in seconds for thousands of heads.

    The steps are scikit-learn's, which takes many minutes (normalised Laplacian, one eigenvector a
    cluster, k-means from the best of several starts), but k-means knows the embedded heads by their
    inner products alone: a step costs the square of the heads, not heads x clusters x dimensions.
    What is left is one eigendecomposition.
    """
    inner = _embedded(affinity, count)
    draw = np.random.RandomState(seed)
    draw.uniform(-1, 1, len(inner))  # scikit-learn's eigensolver takes these: the same starts
    tries = [_k_means(inner, _starts(inner, count, draw)) for _ in range(STARTS)]
    return min(tries, key=lambda result: result[1])[0]


def _embedded(affinity: Matrix, count: int) -> Matrix:
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


def _starts(inner: Matrix, count: int, draw: np.random.RandomState) -> Labels:
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


def _k_means(inner: Matrix, starts: Labels) -> tuple[Labels, float]:
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
        centres = share * np.bincount(members, moved[members, every], count)
        across = share * np.bincount(members, products[members, every], count)
        shift = (centres + squares - 2 * across).sum()
        products, squares = moved, centres
        if shift <= enough:
            labels = (squares[:, None] - 2 * products).argmin(0)
            break
    distance = norms + squares[labels] - 2 * products[labels, every]
    return labels, float(distance.sum())


def _filled(labels: Labels, distance: Matrix, count: int) -> Labels:
    """An empty cluster takes the head that is furthest from its centre."""
    members = labels.copy()
    for cluster in np.flatnonzero(np.bincount(labels, minlength=count) == 0):
        several = np.bincount(members, minlength=count)[members] > 1
        members[np.where(several, distance, -np.inf).argmax()] = cluster
        distance = np.where(members == cluster, -np.inf, distance)
    return members
