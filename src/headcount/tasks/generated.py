"""The pocket tasks as tasks like any other: rows are made on demand, the same ones every time."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from headcount.base.errors import UsageError
from headcount.tasks.pocket.world import POCKET_TASKS, examples
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

SIZES = {"train": 4000, "dev": 1000, "test": 1000}
FOREIGN = ("data", "train", "dev", "hub", "columns", "label", "languages")
"""Options of a source that these tasks have no use for."""
METRICS = {
    "matthews": ("matthews", "accuracy"),
    "f1": ("f1", "accuracy"),
    "spearman": ("spearman", "pearson"),
    "recall": ("recall@1", "perplexity"),
}


@lru_cache(maxsize=16)
def _columns(name: str, split: str, size: int) -> dict[str, list[Any]]:
    """Rows by column; making them takes longer than most of what is done with them."""
    rows = examples(name, split, size)
    return {column: [row[column] for row in rows] for column in rows[0]}


def pocket_task(name: str, source: Source) -> Task:
    """A task of the pocket world; `source.size` rows are made for training (4,000)."""
    if source.size is not None and source.size < 1:
        raise UsageError(f"A split has at least one row, not {source.size}.")
    task = POCKET_TASKS[name]
    named = [option for option in FOREIGN if getattr(source, option) not in (None, ())]
    if named:
        raise UsageError(
            f"The task '{name}' makes its own rows: --{named[0]} is for tasks that read theirs."
        )

    def load(split: str) -> Examples:
        size = source.size if split == "train" and source.size else SIZES[split]
        columns = _columns(name, split, size)
        labels = np.array(columns["label"]) if "label" in columns else None
        return Examples(tuple(list(columns[field]) for field in task.fields), labels)

    return Task(
        name=name,
        kind=task.kind,
        texts=task.fields,
        labels=task.labels,
        called=source.called(task.labels),
        metrics=METRICS.get(task.metric, (task.metric,)),
        loader=load,
        splits=tuple(SIZES),
    )


(
    pocket_acceptability,
    pocket_sentiment,
    pocket_paraphrase,
    pocket_similarity,
    pocket_entailment,
    pocket_corpus,
    pocket_translation,
) = (partial(pocket_task, name) for name in POCKET_TASKS)
