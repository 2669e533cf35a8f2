"""A record as people read it, by its kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from headcount.base.names import split_words
from headcount.runs.kinds.train import TrainResult
from headcount.runs.prune_result import PruneResult
from headcount.runs.results import MetricValue
from headcount.tasks.scores import Score
from headcount.views.tables.amounts import amount
from headcount.views.tables.columns import table
from headcount.views.tables.pruning import prune_table

if TYPE_CHECKING:
    from headcount.exports.export import ExportResult
    from headcount.runs.record import Record


def record_table(record: Record) -> Table:
    """The table of a record: that of its kind, else its plain values line by line."""
    if isinstance(record.result, PruneResult):
        return prune_table(record.result)
    if isinstance(record.result, TrainResult):
        return train_table(record.result, record.seconds)
    rows = [
        (name, str(value))
        for name, value in record.to_json().items()
        if not isinstance(value, dict)
    ]
    return table([record.run.kind, ""], rows)


def train_table(result: TrainResult, seconds: float, out: Path | None = None) -> Table:
    """Rows, steps, the last loss and the scores of a training."""
    rows = [] if out is None else [("out", str(out))]
    rows += [
        ("rows", str(result.rows_trained)),
        ("steps", str(result.steps)),
        ("seconds", f"{seconds:.1f}"),
    ]
    if result.resumed_from is not None:
        rows.append(("resumed from step", str(result.resumed_from)))
    if result.last_loss is not None:
        rows.append(("last loss", f"{result.last_loss:.4f}"))
    if result.evaluation is not None:
        split = split_words(result.evaluation.split)
        for score in map(as_score, result.evaluation.scores.values()):
            rows.append((f"{split} {score.metric}", f"{score.shown} {score.interval}".rstrip()))
        rows.append(("n", str(result.evaluation.n)))
    return table(["trained", result.task], rows)


def as_score(value: MetricValue) -> Score:
    """A metric of a record as the score that it was written from."""
    return Score.from_json(value.to_json())


def export_table(export: ExportResult) -> Table:
    """An exported model: its files, and how far its outputs are from the original's."""
    rows = [
        ("format", export.to),
        ("folder", export.folder),
        ("size", amount(export.bytes, "B")),
        ("files", ", ".join(export.files)),
    ]
    if export.difference is not None:
        rows.append(("largest difference", f"{export.difference:.1e} of the largest output"))
    if export.details:
        rows.append(("read back", export.details))
    return table(["what", "written"], rows)
