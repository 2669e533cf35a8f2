"""A record as people read it, by its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from headcount.base.names import split_words
from headcount.views.tables.amounts import amount
from headcount.views.tables.columns import table
from headcount.views.tables.cuts import prune_table

if TYPE_CHECKING:
    from headcount.exports.formats import ExportResult


def record_table(record: Mapping[str, Any]) -> Table:
    """The table of a record: a cut's or a training's own, else its plain values line by line."""
    data = dict(record)
    if data["kind"] == "prune":
        return prune_table(data)
    if data["kind"] == "train":
        return train_table(data)
    shown = [(name, str(value)) for name, value in data.items() if not isinstance(value, dict)]
    return table([data["kind"], ""], shown)


def train_table(record: Mapping[str, Any]) -> Table:
    """Rows, steps, the last loss and the scores of a training."""
    rows: list[tuple[str, Any]] = [
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
    found = record["evaluation"]
    if found is not None:
        from headcount.training.evaluation import Evaluation

        scored = Evaluation.from_json(found)
        rows += [
            (f"{split_words(scored.split)} {each.metric}", f"{each.shown} {each.interval}".rstrip())
            for each in scored.scores
        ]
        rows.append(("n", str(scored.n)))
    return table(["trained", record["task"]], rows)


def exported_table(done: ExportResult) -> Table:
    """What was written for those who do not have headcount."""
    rows = [
        ("format", done.to),
        ("folder", done.folder),
        ("size", amount(done.bytes, "B")),
        ("files", ", ".join(done.files)),
        ("largest difference", f"{done.difference:.1e} of the largest answer"),
    ]
    return table(["what", "written"], rows)
