"""Distances of heads and their comparison, as JSON and as tables for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from headcount.views.tables.columns import Column, FittedTable, numbers, words

if TYPE_CHECKING:
    from headcount.likeness.compare import MatrixComparison, Pair
    from headcount.likeness.result import Redundancy

NEAREST = 5
"""Pairs of heads that are named as the most alike."""


def nearest(redundancy: Redundancy, stack: str, name: str, count: int) -> list[dict[str, object]]:
    """The pairs of heads with the smallest distance."""
    import numpy as np

    values, errors = redundancy[name, stack]
    heads = redundancy.heads(stack)
    rows, columns = np.triu_indices(len(values), 1)
    order = np.argsort(values[rows, columns], kind="stable")[:count]
    return [
        {
            "heads": [str(heads[row]), str(heads[column])],
            "distance": float(values[row, column]),
            "stderr": float(errors[row, column]),
        }
        for row, column in zip(rows[order], columns[order], strict=True)
    ]


def redundancy_json(redundancy: Redundancy) -> dict[str, Any]:
    """How it was made, a summary of each matrix, and the most alike heads."""
    data = redundancy.to_json()
    for row in data["summary"]:
        row["nearest"] = nearest(redundancy, row["stack"], row["distance"], NEAREST)
    return data


def redundancy_table(redundancy: Redundancy, out: Path | None) -> Group:
    """A line for each matrix."""
    rows = redundancy_json(redundancy)["summary"]
    provenance = redundancy.provenance
    early = ", stopped at its tolerance" if provenance.get("stopped_early") else ""
    inputs = f"{redundancy.count} inputs" + (
        f" ({provenance['inputs']})" if provenance["inputs"] else ""
    )
    head = f"{provenance['class']} on {inputs}{early}, seed {provenance['seed']}"
    columns = [
        words("stack", 7, [row["stack"] for row in rows]),
        words("distance", 9, [row["distance"] for row in rows]),
        numbers("mean", 8, [row["mean"] for row in rows]),
        numbers("smallest", 6, [row["smallest"] for row in rows]),
        numbers("largest", 4, [row["largest"] for row in rows]),
        numbers("largest error", 5, [row["largest_error"] for row in rows]),
        words("most alike", 3, [" and ".join(row["nearest"][0]["heads"]) for row in rows]),
    ]
    saved = [Text(f"Written to {out}.")] if out else []
    return Group(Text(head), FittedTable(columns), *saved)


def comparison_table(comparison: MatrixComparison) -> Group:
    """Agreement between distances, between files, and how distance depends on layers."""
    parts: list[RenderableType] = []
    if comparison.between_distances:
        parts += [Text("Between distances"), _pairs(comparison.between_distances, "file")]
    if comparison.between_files:
        parts += [Text("Between files"), _pairs(comparison.between_files, "distance")]
    title = Text("By layer: distance against layer gap, and clusters of layers")
    return Group(*parts, title, _layers(comparison))


def _pairs(pairs: tuple[Pair, ...], within: str) -> FittedTable:
    agreement = [pair.agreement for pair in pairs]
    spread = [f"{a.low:.3f} - {a.high:.3f}" for a in agreement]
    return FittedTable(
        [
            words("stack", 2, [pair.stack for pair in pairs]),
            words(within, 9, [pair.within for pair in pairs]),
            words("one", 9, [pair.one for pair in pairs]),
            words("other", 9, [pair.other for pair in pairs]),
            numbers("Pearson", 8, [a.pearson for a in agreement]),
            Column(title="95 %", weight=6, cells=spread),
            numbers("Spearman", 5, [a.spearman for a in agreement]),
            numbers("normalised", 3, [a.normalised for a in agreement]),
            numbers("Mantel p", 4, [a.p_value for a in agreement]),
            numbers("mean difference", 4, [a.mean_difference for a in agreement], ".4f"),
        ]
    )


def _layers(comparison: MatrixComparison) -> FittedTable:
    rows = comparison.where
    gaps = [row.gap for row in rows]
    labels = ["".join(map(str, row.clusters.labels)) for row in rows]
    contiguous = ["yes" if row.clusters.contiguous else "no" for row in rows]
    return FittedTable(
        [
            words("stack", 2, [row.stack for row in rows]),
            words("file", 9, [row.file for row in rows]),
            words("distance", 9, [row.distance for row in rows]),
            numbers("gap Spearman", 8, [None if g is None else g.spearman for g in gaps]),
            numbers("p", 6, [None if g is None else g.p_value for g in gaps]),
            numbers("same layer", 5, [None if g is None else g.means[0] for g in gaps]),
            numbers("farthest", 4, [None if g is None else g.means[-1] for g in gaps]),
            words("clusters", 7, labels),
            words("contiguous", 4, contiguous),
            numbers("adjusted Rand", 3, [row.clusters.adjusted_rand for row in rows], ".2f"),
        ]
    )
