from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score, silhouette_samples

from headcount.base.errors import UsageError
from headcount.likeness import clusters
from headcount.likeness.clusters import (
    _split,
    cluster,
    mean_matrix,
    representatives,
    spectral_labels,
)

GROUPS = np.repeat([0, 1, 2, 3], [5, 3, 4, 4])


def grouped(groups=GROUPS, *, within=0.1, between=0.8, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    values = np.where(groups[:, None] == groups, within, between)
    values = np.triu(values + noise * rng.random(values.shape), 1)
    return values + values.T


@pytest.mark.parametrize("how", [{"count": 4}, {"counter": "affinity"}, {"counter": "hdbscan"}])
def test_clear_clusters_are_found(how):
    assert adjusted_rand_score(GROUPS, cluster(grouped(), **how)) == 1


@given(
    count=st.integers(0, 12),
    seed=st.integers(0, 50),
    same=st.lists(st.integers(0, 11), min_size=2, max_size=12, unique=True),
)
def test_exactly_as_many_clusters_as_asked_even_of_identical_heads(count, seed, same):
    values = grouped(np.arange(12) % 3, noise=0.3, seed=seed)
    values[same], values[:, same] = values[same[0]], values[:, same[:1]]
    values[np.ix_(same, same)] = 0
    np.fill_diagonal(values, 0)
    values = np.maximum(values, values.T)
    labels = cluster(values, count, seed=seed)
    kept = representatives(values, labels)
    assert len(kept) == count
    assert kept == sorted(set(kept))


def test_clusters_that_k_means_left_out_are_split_off_from_the_widest():
    values = grouped(np.array([0, 0, 0, 1, 1, 1]), noise=0.01)
    values[0, 2] = values[2, 0] = values[1, 2] = values[2, 1] = 0.4
    found = _split(values, np.array([0, 0, 0, 5, 5, 5]), 3)
    assert adjusted_rand_score([0, 0, 2, 1, 1, 1], found) == 1
    assert len(set(_split(values, np.zeros(6, int), 6))) == 6


def test_all_heads_identical():
    values = np.zeros((6, 6))
    assert len(set(cluster(values, 3))) == 3
    assert set(cluster(values)) == {0}


def test_a_head_like_no_other_makes_its_own_cluster():
    values = grouped(np.array([0, 0, 0, 1, 1, 1, 2]), noise=0.01)
    labels = cluster(values, counter="hdbscan")
    assert len(set(labels)) == 3
    assert (labels == labels[6]).sum() == 1


def test_representatives_have_the_best_silhouette_of_their_cluster():
    values = grouped(noise=0.3, seed=2)
    worth = silhouette_samples(values, GROUPS, metric="precomputed")
    wanted = [max(np.flatnonzero(g == GROUPS), key=lambda i: worth[i]) for g in range(4)]
    assert representatives(values, GROUPS) == wanted


def test_medoids_are_nearest_to_their_cluster():
    values = grouped(noise=0.3, seed=3)
    wanted = []
    for g in range(4):
        group = np.flatnonzero(g == GROUPS)
        wanted.append(group[values[np.ix_(group, group)].sum(1).argmin()])
    assert representatives(values, GROUPS, by="medoid") == wanted
    assert wanted != representatives(values, GROUPS)


def test_one_cluster_is_represented_by_its_medoid():
    values = np.array([[0, 0.1, 0.9], [0.1, 0, 0.2], [0.9, 0.2, 0]])
    assert representatives(values, cluster(values, 1)) == [1]


def test_the_mean_of_several():
    a, b = grouped(seed=1), grouped(seed=2)
    assert np.allclose(mean_matrix([a, b, b]), (a + 2 * b) / 3)
    with pytest.raises(UsageError, match="no redundancy matrix"):
        mean_matrix([])
    with pytest.raises(UsageError, match="different numbers of heads have no mean: 16, 3"):
        mean_matrix([a, np.zeros((3, 3))])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: cluster(grouped(), 17), "16 heads cannot make 17 clusters"),
        (lambda: cluster(grouped(), -1), "cannot make -1"),
        (lambda: cluster(grouped(), counter="hdbscn"), "Did you mean 'hdbscan'"),
        (lambda: representatives(grouped(), GROUPS, by="medio"), "Did you mean 'medoid'"),
    ],
)
def test_what_makes_no_sense_is_refused(call, says):
    with pytest.raises(UsageError, match=says):
        call()


@pytest.fixture
def many(monkeypatch):
    """Twelve heads are many, and a hundred too many: what holds for thousands, quickly."""
    monkeypatch.setattr(clusters, "EXACT", 12)
    monkeypatch.setattr(clusters, "LARGE", 12)
    monkeypatch.setattr(clusters, "MOST", 100)
    # what takes minutes for thousands of heads must not be asked
    monkeypatch.delattr(clusters, "SpectralClustering")


@pytest.mark.usefixtures("many")
def test_thousands_of_heads_are_clustered_at_a_bounded_cost_that_is_said(caplog):
    assert adjusted_rand_score(GROUPS, cluster(grouped(), 4)) == 1
    assert "Clustering 16 heads takes up to" in caplog.text
    same = np.zeros((16, 16))
    assert len(set(cluster(same, 9))) == 9


@pytest.mark.usefixtures("many")
def test_affinity_propagation_has_fewer_steps_for_thousands_of_heads(monkeypatch, caplog):
    monkeypatch.setattr(clusters, "MESSAGES", 20)
    with pytest.raises(UsageError, match=r"did not settle .* in 11 steps"):
        cluster(grouped())  # 20 for 12 heads, (12 / 16)² of them for 16
    assert "takes up to 90 s" in caplog.text
    assert adjusted_rand_score(GROUPS, cluster(grouped(), counter="hdbscan")) == 1


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("count", [50, None])
def test_too_many_heads_are_refused(count):
    values = grouped(np.arange(101) % 4)
    with pytest.raises(UsageError, match="101 heads of one stack are too many to cluster"):
        cluster(values, count)


def affinity(heads: int, seed: int) -> np.ndarray:
    """Of heads that are points around eight places."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(8, 5))[rng.integers(0, 8, heads)] + 0.3 * rng.normal(size=(heads, 5))
    distance = np.linalg.norm(points[:, None] - points, axis=-1)
    return np.exp(-((distance / np.median(distance)) ** 2) / 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [3, 24, 48])
def test_it_is_what_scikit_learn_finds(count, seed, monkeypatch):
    monkeypatch.setattr(clusters, "STARTS", 10)
    graph = affinity(96, seed)
    theirs = SpectralClustering(count, affinity="precomputed", random_state=seed)
    want = theirs.fit_predict(graph)
    found = spectral_labels(graph, count, seed)
    assert adjusted_rand_score(want, found) == pytest.approx(1)


def test_seeds_are_trials_and_the_same_seed_is_the_same():
    graph = affinity(60, 0)
    first, again, other = (spectral_labels(graph, 20, seed).tolist() for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize("graph", [np.ones((12, 12)), np.eye(12)])
def test_heads_that_are_all_alike_or_have_nothing_in_common(graph):
    labels = spectral_labels(graph, 4, 0)
    assert labels.shape == (12,)
    assert set(labels) <= set(range(4))


def test_the_matrix_is_left_as_it_was():
    graph = affinity(20, 1)
    before = graph.copy()
    spectral_labels(graph, 5, 0)
    assert np.array_equal(graph, before)
