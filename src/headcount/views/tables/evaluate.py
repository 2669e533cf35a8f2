"""Scores of a model and of masks of it, a line for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from headcount.base.names import split_words
from headcount.views.tables.columns import table

if TYPE_CHECKING:
    from headcount.tasks.metrics import Difference
    from headcount.training.evaluation import Evaluation


def page(found: list[Evaluation], lost: list[list[Difference]]) -> Table:
    """Every score of the model and of each mask; `lost` are the masks' differences from it."""
    rows = [
        (
            "all" if each.mask is None or not each.mask.dropped else each.mask.pattern,
            score.metric,
            score.shown,
            score.interval,
            *([str(change) if change else ""] if lost else []),
            each.n,
            f"{each.seconds:.2f}",
        )
        for each, changes in zip(found, [[None] * len(found[0].scores), *lost], strict=True)
        for score, change in zip(each.scores, changes, strict=True)
    ]
    against = ["from all heads"] if lost else []
    columns = ["heads kept", "metric", "score", "95 % interval", *against, "n", "seconds"]
    return table(columns, rows, title=f"{found[0].task} {split_words(found[0].split)}")
