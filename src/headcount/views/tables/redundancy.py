"""What `headcount redundancy` and `redundancy compare` found, as JSON and as pages for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from headcount.views.tables.columns import Column, FittedTable

if TYPE_CHECKING:
    from headcount.likeness.compare import MatrixComparison, Pair
    from headcount.likeness.result import Redundancy

NEAREST = 5
"""Pairs of heads that are named as the most alike."""


def nearest(found: Redundancy, stack: str, name: str, count: int) -> list[dict[str, Any]]:
    """The pairs of heads with the smallest distance."""
    import numpy as np

    values, errors = found[name, stack]
    heads = found.heads(stack)
    rows, columns = np.triu_indices(len(values), 1)
    order = np.argsort(values[rows, columns], kind="stable")[:count]
    return [
        {
            "heads": [str(heads[rows[i]]), str(heads[columns[i]])],
            "distance": float(values[rows[i], columns[i]]),
            "stderr": float(errors[rows[i], columns[i]]),
        }
        for i in order
    ]


def found_to_json(found: Redundancy) -> dict[str, Any]:
    """How it was made, a summary of each matrix, and the most alike heads."""
    data = found.to_json()
    for each in data["summary"]:
        each["nearest"] = nearest(found, each["stack"], each["distance"], NEAREST)
    return data


def found_page(found: Redundancy, out: Path | None) -> Group:
    """A line for each matrix."""
    rows = found_to_json(found)["summary"]
    made = found.made
    early = ", stopped at its tolerance" if made.get("stopped_early") else ""
    inputs = f"{found.count} inputs" + (f" ({made['inputs']})" if made["inputs"] else "")
    head = f"{made['class']} on {inputs}{early}, seed {made['seed']}"
    closest = [" and ".join(row["nearest"][0]["heads"]) for row in rows]
    columns = [
        Column(title="stack", weight=7, cells=[row["stack"] for row in rows], left=True),
        Column(title="distance", weight=9, cells=[row["distance"] for row in rows], left=True),
        _numbers("mean", 8, [row["mean"] for row in rows]),
        _numbers("smallest", 6, [row["smallest"] for row in rows]),
        _numbers("largest", 4, [row["largest"] for row in rows]),
        _numbers("largest error", 5, [row["largest_error"] for row in rows]),
        Column(title="most alike", weight=3, cells=closest, left=True),
    ]
    saved = [Text(f"Written to {out}.")] if out else []
    return Group(Text(head), FittedTable(columns), *saved)


def compared_page(found: MatrixComparison) -> Group:
    """Agreement between distances, between files, and where in the layers it is."""
    parts: list[Any] = []
    if found.between_distances:
        parts += [Text("Between distances"), _pairs(found.between_distances, "file")]
    if found.between_files:
        parts += [Text("Between files"), _pairs(found.between_files, "distance")]
    title = Text("Where: distance against layer gap, and clusters of layers")
    return Group(*parts, title, _where(found))


def _pairs(pairs: tuple[Pair, ...], within: str) -> FittedTable:
    each = [pair.agreement for pair in pairs]
    spread = [f"{a.low:.3f} - {a.high:.3f}" for a in each]
    return FittedTable(
        [
            Column(title="stack", weight=2, cells=[pair.stack for pair in pairs], left=True),
            Column(title=within, weight=9, cells=[pair.within for pair in pairs], left=True),
            Column(title="one", weight=9, cells=[pair.one for pair in pairs], left=True),
            Column(title="other", weight=9, cells=[pair.other for pair in pairs], left=True),
            _numbers("Pearson", 8, [a.pearson for a in each]),
            Column(title="95 %", weight=6, cells=spread),
            _numbers("Spearman", 5, [a.spearman for a in each]),
            _numbers("normalised", 3, [a.normalised for a in each]),
            _numbers("Mantel p", 4, [a.p_value for a in each]),
            _numbers("mean difference", 4, [a.mean_difference for a in each], 4),
        ]
    )


def _where(found: MatrixComparison) -> FittedTable:
    rows = found.where
    gaps = [row.gap for row in rows]
    labels = ["".join(map(str, row.clusters.labels)) for row in rows]
    runs = ["yes" if row.clusters.contiguous else "no" for row in rows]
    return FittedTable(
        [
            Column(title="stack", weight=2, cells=[row.stack for row in rows], left=True),
            Column(title="file", weight=9, cells=[row.file for row in rows], left=True),
            Column(title="distance", weight=9, cells=[row.distance for row in rows], left=True),
            _numbers("gap Spearman", 8, [None if g is None else g.spearman for g in gaps]),
            _numbers("p", 6, [None if g is None else g.p_value for g in gaps]),
            _numbers("same layer", 5, [None if g is None else g.means[0] for g in gaps]),
            _numbers("farthest", 4, [None if g is None else g.means[-1] for g in gaps]),
            Column(title="clusters", weight=7, cells=labels, left=True),
            Column(title="runs of layers", weight=4, cells=runs, left=True),
            _numbers("adjusted Rand", 3, [row.clusters.adjusted_rand for row in rows], 2),
        ]
    )


def _numbers(title: str, weight: int, values: list[float | None], digits: int = 3) -> Column:
    cells = ["-" if value is None or value != value else f"{value:.{digits}f}" for value in values]
    return Column(title=title, weight=weight, cells=cells)
