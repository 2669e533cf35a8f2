"""Clusters of like heads from a redundancy matrix alone, and one head to stand for each.

    labels = cluster(matrix, 72)                    # or as many clusters as there seem to be
    kept = representatives(matrix, labels)

On Attention Redundancy (NAACL 2021), section 7.1. For a number of clusters the clustering is
spectral; without one, affinity propagation or HDBSCAN finds the number itself. Above `EXACT` heads
the spectral clustering is that of `spectral.py`, and affinity propagation has fewer steps; above
`MOST` nothing is clustered.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import HDBSCAN, AffinityPropagation, SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_samples

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.likeness.agreement import Matrix, as_matrix
from headcount.likeness.spectral import spectral_labels

COUNTERS = ("affinity", "hdbscan")
"""Clusterings that find the number of clusters themselves."""
REPRESENTATIVES = ("silhouette", "medoid")
EXACT = 1536
"""Heads of a stack that scikit-learn clusters in under half a minute; 4,096 take it many."""
MOST = 8192
"""Heads of a stack that are clustered at all: time goes with the cube of the heads, memory with the
square, four matrices of 0.5 GB here."""
MESSAGES = 3000
"""Steps of affinity propagation, at most; for more than `EXACT` heads as many as take as long."""
SECONDS = {"spectral": 20, "affinity": 90}
"""What 4,096 heads take on one core, at most about; affinity propagation has no more for others."""

talk = logging.getLogger("headcount")


def mean_matrix(matrices: Iterable[ArrayLike]) -> Matrix:
    """The mean of several redundancy matrices of the same heads."""
    arrays = [as_matrix(matrix) for matrix in matrices]
    if not arrays:
        raise UsageError("The mean of no redundancy matrix is asked for.")
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
    if heads > EXACT:
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
    steps = int(MESSAGES * min(1, (EXACT / len(values)) ** 2))
    # damped messages change slowly: after the usual 15 steps without a change they still may
    model = AffinityPropagation(
        affinity="precomputed",
        damping=0.9,
        convergence_iter=50,
        max_iter=steps,
        random_state=seed,
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
