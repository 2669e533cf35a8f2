"""Two checkpoints and their tasks: drift, importance on both, and recall where it is asked for.

Everything the command `headcount transfer` does between opening two models and showing the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from transformers import PreTrainedModel

from headcount.changes.measure import Transfer, transfer
from headcount.changes.options import DriftOptions
from headcount.changes.recall import RankedHeads, rank_heads, score_counts
from headcount.heads import Scores
from headcount.tasks import Task
from headcount.tasks.calibration import InputOptions
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.loading import match
from headcount.tasks.rows import labelled_rows
from headcount.training.scoring import Scoring

Bar = Callable[[str], AbstractContextManager[Callable[..., None]]]
"""A sign of life: around some work, and told what is done of how much."""


def no_bar(text: str) -> AbstractContextManager[Callable[..., None]]:
    """Nothing is shown."""
    del text
    return nullcontext(lambda *_: None)


def transfer_study(
    models: Sequence[PreTrainedModel],
    tasks: Sequence[Task | None],
    inputs: EncodedRows,
    *,
    tokenizer: Any,
    input_options: InputOptions,
    options: DriftOptions,
    name: str = "",
    bar: Bar = no_bar,
) -> Transfer:
    """Compare the pre-trained model with the fine-tuned one; each may have a task of its own."""
    kept: dict[str, Any] = {"seed": input_options.seed, "max_length": input_options.max_length}

    def rank(model: PreTrainedModel, task: Task) -> Scores:
        rows = labelled_rows(model, task, tokenizer, limit=options.importance_samples, **kept)
        with bar(f"importance on {task.name}") as progress:
            report = lambda done: progress(done, len(rows))  # noqa: E731
            return rank_heads(model, task, rows, normalize=options.normalize, report=report)

    def scored(model: PreTrainedModel, task: Task, split: str | None) -> RankedHeads:
        scoring = Scoring(split=split, limit=options.limit, **kept)
        with bar(f"scoring {task.name} with fewer and fewer heads"):
            return score_counts(
                model, task, ranks[task.name],
                points=options.points, tokenizer=tokenizer, scoring=scoring,
            )  # fmt: skip

    for model in models:
        match(model, tokenizer)
    (before, after), (first, second) = models, _apart(*tasks)
    pairs = ((after, second), (before, first))
    ranks = {task.name: rank(model, task) for model, task in pairs if task is not None}
    with bar("comparing") as progress:
        result = transfer(
            before, after, inputs, importance=ranks, samples=input_options.most,
            seed=input_options.seed, name=name, progress=progress,
        )  # fmt: skip
    if options.recall and first is not None and second is not None:
        last = scored(after, second, input_options.split), scored(before, first, None)
        result = result.with_recall(*last, options.share)
    return result


def _apart(first: Task | None, second: Task | None) -> tuple[Task | None, Task | None]:
    """The two tasks under two names: one task on other data has the same."""
    if first is not None and second is not None and first.name == second.name:
        first = replace(first, name=f"pre-training {first.name}")
    return first, second
