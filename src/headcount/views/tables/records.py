"""A record as people read it, by its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from headcount.base.names import split_words
from headcount.views.tables.amounts import amount
from headcount.views.tables.columns import table
from headcount.views.tables.pruning import prune_table

if TYPE_CHECKING:
    from headcount.exports.export import ExportResult


def record_table(record: Mapping[str, Any]) -> Table:
    """The table of a record: that of its kind, else its plain values line by line."""
    if record["kind"] in ("prune", "train"):
        return (prune_table if record["kind"] == "prune" else train_table)(record)
    rows = [(name, str(value)) for name, value in record.items() if not isinstance(value, dict)]
    return table([record["kind"], ""], rows)


def train_table(record: Mapping[str, Any]) -> Table:
    """Rows, steps, the last loss and the scores of a training."""
    rows = [
        ("rows", str(record["rows_trained"])),
        ("steps", str(record["steps"])),
        ("seconds", f"{record['seconds']:.1f}"),
    ]
    if record.get("out") is not None:
        rows.insert(0, ("out", str(record["out"])))
    if record["resumed_from"] is not None:
        rows.append(("resumed from step", str(record["resumed_from"])))
    if record["last_loss"] is not None:
        rows.append(("last loss", f"{record['last_loss']:.4f}"))
    if record["evaluation"] is not None:
        from headcount.training.evaluation import Evaluation

        evaluation = Evaluation.from_json(record["evaluation"])
        split = split_words(evaluation.split)
        rows += [
            (f"{split} {score.metric}", f"{score.shown} {score.interval}".rstrip())
            for score in evaluation.scores
        ]
        rows.append(("n", str(evaluation.n)))
    return table(["trained", record["task"]], rows)


def export_table(export: ExportResult) -> Table:
    """An exported model: its files, and how far its outputs are from the original's."""
    rows = [
        ("format", export.to),
        ("folder", export.folder),
        ("size", amount(export.bytes, "B")),
        ("files", ", ".join(export.files)),
        ("largest difference", f"{export.difference:.1e} of the largest output"),
    ]
    return table(["what", "written"], rows)
