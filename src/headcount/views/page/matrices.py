"""Redundancy matrices of a subject, with the layer gap, layers in a tree, and who agrees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from headcount.heads import Layout
from headcount.views.page.commands import command_beside
from headcount.views.page.models import labels, model_name
from headcount.views.page.reading import careful, number, numbers, quantised, text
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem

EXACT = 600
"""Heads up to which a matrix is kept in 65,535 steps; above, in 255."""
BUDGET = 4_000_000
"""Pairs of heads of all matrices of a page together; what is over that is left out."""
WORK = 60_000_000
"""Pairs times permutations that a test of agreement may take."""


def matrices(subject: PageSubject, found: ReportInput) -> list[dict[str, Any]]:
    """Every matrix: the distances of one stack in one file."""
    listed: list[dict[str, Any]] = []
    pairs, own = 0, own_first(subject, found)
    phases = labels((item.data.provenance.get("model", "?") for item in own), found)
    for item in own:
        with careful(found, item):
            for (stack, distance), measured in item.data.measured.items():
                pairs += len(measured.values) ** 2 // 2
                if pairs > BUDGET:
                    why = f"{distance}, {stack}: the page would become too large."
                    found.skipped.append((str(item.path), why))
                    continue
                phase = phases[str(item.data.provenance.get("model", "?"))]
                listed.append(_matrix(item, stack, distance, measured) | {"model": phase})
    return _apart(listed)


def _apart(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Files of one model and the same inputs are told apart by their names, or by a number."""
    taken: set[tuple[str, ...]] = set()
    for each in listed:
        names = [each["inputs"], f"{each['inputs']} ({each['file']})"]
        names += [f"{names[1]} {count}" for count in range(2, len(listed) + 2)]
        place = tuple(each[name] for name in ("model", "stack", "distance"))
        each["inputs"] = next(name for name in names if (*place, name) not in taken)
        taken.add((*place, each["inputs"]))
    return listed


def own_first(subject: PageSubject, found: ReportInput) -> list[ReportItem]:
    """Those of the subject's own model before others of its layout."""

    def others(item: ReportItem) -> tuple[bool, bool]:
        model = str(item.data.provenance.get("model", ""))
        own = model_name(model, found, seed=False) == subject.model
        return not own, own and model not in subject.paths

    return sorted(subject.of("matrix"), key=others)


def _matrix(item: ReportItem, stack: str, distance: str, measured: Any) -> dict[str, Any]:
    values, made, layout = measured.values, item.data.provenance, item.data.layout
    upper = np.triu_indices(len(values), 1)
    wide = len(values) <= EXACT
    return {
        "file": item.path.stem,
        "inputs": text(made.get("inputs", ""), 80),
        "count": item.data.count,
        "stack": stack,
        "distance": text(distance, 30),
        "heads": len(values),
        "values": quantised(values[upper], wide=wide),
        "error": number(float(np.max(measured.stderr[upper], initial=0.0))),
        "mean": number(float(values[upper].mean())) if len(values) > 1 else None,
        "order": _leaves(values),
        "gap": _gap(values, layout, stack),
        "tree": _tree(values, layout, stack),
        "command": command_beside(item),
    }


def _leaves(values: np.ndarray) -> list[int]:
    """Heads in the order of a tree that puts like ones together."""
    if len(values) < 3:
        return list(range(len(values)))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    tree = linkage(squareform(values, checks=False), "average", optimal_ordering=len(values) <= 300)
    return leaves_list(tree).tolist()


def _gap(values: np.ndarray, layout: Layout, stack: str) -> dict[str, Any] | None:
    """Mean distance by layers between two heads, tested by permuting heads."""
    from headcount.likeness.layers import layer_gap, layers_of

    layers = layers_of(layout, stack)
    if len(np.unique(layers)) < 3:
        return None
    times = _permutations(values)
    found = layer_gap(values, layers, permutations=times)
    return {"gaps": list(found.gaps), "means": numbers(found.means), "counts": list(found.counts),
            "spearman": number(found.spearman),
            "p": number(found.p_value) if times > 1 else None}  # fmt: skip


def _tree(values: np.ndarray, layout: Layout, stack: str) -> dict[str, Any] | None:
    """Layers joined step by step by the mean distance of their heads."""
    from scipy.cluster.hierarchy import dendrogram, linkage
    from scipy.spatial.distance import squareform

    from headcount.likeness.layers import layer_clusters, layer_distances, layers_of

    layers = layers_of(layout, stack)
    names = np.unique(layers).tolist()
    if len(names) < 2:
        return None
    apart = layer_distances(values, layers)
    np.fill_diagonal(apart, 0)
    joined = linkage(squareform(apart, checks=False), "average")
    drawn = dendrogram(joined, no_plot=True)
    groups = layer_clusters(values, layers, min(3, len(names)))
    return {"layers": names, "leaves": drawn["leaves"], "joins": joined[:, :3].tolist(),
            "groups": list(groups.labels), "contiguous": groups.contiguous}  # fmt: skip


def _permutations(values: np.ndarray) -> int:
    """How often heads are permuted: enough for a test, or once where there are too many heads."""
    times = min(999, WORK // max(1, len(values) ** 2))
    return int(times) if times >= 99 else 1


def agreements(subject: PageSubject, found: ReportInput) -> list[dict[str, Any]]:
    """Do distances and files agree? The pairs that `headcount redundancy compare` tests."""
    from headcount.likeness.agreement import agree

    listed: list[dict[str, Any]] = []
    items = own_first(subject, found)
    for item in items:
        with careful(found, item):
            for stack in item.data.stacks:
                for one, other in combinations(item.data.distances, 2):
                    pair = [item.data[name, stack].values for name in (one, other)]
                    listed += _pair(agree, pair, stack, item.path.stem, one, other)
    for first, second in combinations(items, 2):
        with careful(found, second):
            for stack, name in first.data.measured:
                if (stack, name) in second.data.measured:
                    pair = [each.data[name, stack].values for each in (first, second)]
                    listed += _pair(agree, pair, stack, name, first.path.stem, second.path.stem)
    return listed


def _pair(
    agree: Any, pair: Sequence[np.ndarray], stack: str, within: str, one: str, other: str
) -> list[dict[str, Any]]:
    if len(pair[0]) < 3 or any(np.ptp(each[np.triu_indices(len(each), 1)]) == 0 for each in pair):
        return []
    times = _permutations(pair[0])
    found = agree(*pair, permutations=times, resamples=min(500, times))
    tested = times > 1
    return [
        {
            "stack": text(stack, 20), "within": text(within, 60), "one": text(one, 60),
            "other": text(other, 60), "r": number(found.pearson),
            "low": number(found.low) if tested else None,
            "high": number(found.high) if tested else None,
            "spearman": number(found.spearman), "p": number(found.p_value) if tested else None,
            "difference": number(found.mean_difference),
        }
    ]  # fmt: skip
