"""Redundancy matrices of a subject: by layer gap, layers as a tree, and agreement of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from headcount.views.page.reading import Quantised, number, quantised, text
from headcount.views.page.subjects import PageSubject, labels, model_name
from headcount.views.page.walk import ReportInput, ReportItem

if TYPE_CHECKING:
    from headcount.likeness.compare import Pair
    from headcount.likeness.layers import LayerClusters, LayerGap
    from headcount.likeness.result import Redundancy

EXACT = 600
"""Heads up to which a matrix is kept in 65,535 steps; above, in 255."""
BUDGET = 4_000_000
"""Pairs of heads of all matrices of a page together; more are left out."""
WORK = 60_000_000
"""Pairs times permutations that a test of agreement may take."""


@dataclass(frozen=True, kw_only=True)
class LayerTree:
    """Layers joined step by step by the mean distance of their heads."""

    layers: list[int]
    leaves: list[int]
    joins: list[list[float]]
    clusters: LayerClusters
    """Three of them."""


@dataclass(frozen=True, kw_only=True)
class PageMatrix:
    """The distances of one stack in one file."""

    model: str
    inputs: str
    file: str
    count: int
    stack: str
    distance: str
    heads: int
    values: Quantised
    """The half above the diagonal."""
    error: float | None
    """The largest standard error."""
    mean: float | None
    order: list[int]
    """Heads in the order of a tree, similar ones together."""
    gap: LayerGap | None
    tree: LayerTree | None
    command: str | None


def subject_matrices(subject: PageSubject, report: ReportInput) -> list[ReportItem]:
    """Files of matrices: those of the subject's model before others of its layout."""

    def rank(item: ReportItem) -> tuple[bool, bool]:
        model = str(item.data.provenance.get("model", ""))
        same = model_name(model, report, seed=False) == subject.model
        return not same, same and model not in subject.paths

    return sorted(subject.of("matrix"), key=rank)


def matrices(subject: PageSubject, report: ReportInput) -> list[PageMatrix]:
    """Every matrix, as far as the page does not become too large."""
    items = subject_matrices(subject, report)
    models = labels((item.data.provenance.get("model", "?") for item in items), report)
    listed: list[PageMatrix] = []
    pairs, taken = 0, set[tuple[str, ...]]()
    for item in items:
        redundancy: Redundancy = item.data
        model = models[str(redundancy.provenance.get("model", "?"))]
        inputs = text(redundancy.provenance.get("inputs", ""), 80)
        for (stack, distance), measured in redundancy.measured.items():
            pairs += len(measured.values) ** 2 // 2
            if pairs > BUDGET:
                report.skip(item.path, f"{distance}, {stack}: the page would become too large.")
                continue
            # files of one model and inputs are distinguished by their names, or by a number
            names = [inputs, f"{inputs} ({item.path.stem})"]
            names += [f"{names[1]} {count}" for count in range(2, len(items) + 2)]
            name = next(name for name in names if (model, stack, distance, name) not in taken)
            taken.add((model, stack, distance, name))
            with report.careful(item):
                listed.append(_matrix(item, model, name, stack, distance))
    return listed


def _matrix(item: ReportItem, model: str, inputs: str, stack: str, distance: str) -> PageMatrix:
    from headcount.likeness.layers import layers_of

    redundancy: Redundancy = item.data
    values, errors = redundancy.measured[stack, distance]
    layers = layers_of(redundancy.layout, stack)
    upper = np.triu_indices(len(values), 1)
    return PageMatrix(
        model=model,
        inputs=inputs,
        file=item.path.stem,
        count=redundancy.count,
        stack=stack,
        distance=text(distance, 30),
        heads=len(values),
        values=quantised(values[upper], wide=len(values) <= EXACT),
        error=number(float(np.max(errors[upper], initial=0.0))),
        mean=number(float(values[upper].mean())) if len(values) > 1 else None,
        order=_leaves(values),
        gap=_gap(values, layers),
        tree=_tree(values, layers),
        command=item.command,
    )


def _leaves(values: np.ndarray) -> list[int]:
    if len(values) < 3:
        return list(range(len(values)))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    tree = linkage(squareform(values, checks=False), "average", optimal_ordering=len(values) <= 300)
    return leaves_list(tree).tolist()


def _gap(values: np.ndarray, layers: np.ndarray) -> LayerGap | None:
    from headcount.likeness.layers import layer_gap

    if len(np.unique(layers)) < 3:
        return None
    times = _permutations(values)
    gap = layer_gap(values, layers, permutations=times)
    return gap if times > 1 else replace(gap, p_value=math.nan)


def _tree(values: np.ndarray, layers: np.ndarray) -> LayerTree | None:
    from scipy.cluster.hierarchy import dendrogram, linkage
    from scipy.spatial.distance import squareform

    from headcount.likeness.layers import layer_clusters, layer_distances

    names = np.unique(layers).tolist()
    if len(names) < 2:
        return None
    distances = layer_distances(values, layers)
    np.fill_diagonal(distances, 0)
    joined = linkage(squareform(distances, checks=False), "average")
    return LayerTree(
        layers=names,
        leaves=dendrogram(joined, no_plot=True)["leaves"],
        joins=joined[:, :3].tolist(),
        clusters=layer_clusters(values, layers, min(3, len(names))),
    )


def _permutations(values: np.ndarray) -> int:
    """How often heads are permuted: enough for a test, or once where there are too many heads."""
    times = min(999, WORK // max(1, len(values) ** 2))
    return int(times) if times >= 99 else 1


def agreements(subject: PageSubject, report: ReportInput) -> list[Pair]:
    """Do distances and files agree? The pairs that `headcount redundancy compare` tests."""
    pairs: list[Pair | None] = []
    items = subject_matrices(subject, report)
    for item in items:
        with report.careful(item):
            for stack in item.data.stacks:
                for one, other in combinations(item.data.distances, 2):
                    both = [item.data[name, stack].values for name in (one, other)]
                    pairs.append(_pair(both, stack, item.path.stem, one, other))
    for first, second in combinations(items, 2):
        with report.careful(second):
            for stack, name in first.data.measured:
                if (stack, name) in second.data.measured:
                    both = [item.data[name, stack].values for item in (first, second)]
                    pairs.append(_pair(both, stack, name, first.path.stem, second.path.stem))
    return [pair for pair in pairs if pair]


def _pair(
    matrices: Sequence[np.ndarray], stack: str, within: str, one: str, other: str
) -> Pair | None:
    from headcount.likeness.agreement import agree
    from headcount.likeness.compare import Pair

    upper = np.triu_indices(len(matrices[0]), 1)
    if len(matrices[0]) < 3 or any(np.ptp(values[upper]) == 0 for values in matrices):
        return None
    times = _permutations(matrices[0])
    agreement = agree(*matrices, permutations=times, resamples=min(500, times))
    if times == 1:
        agreement = replace(agreement, low=math.nan, high=math.nan, p_value=math.nan)
    return Pair(stack=stack, within=within, one=one, other=other, agreement=agreement)
