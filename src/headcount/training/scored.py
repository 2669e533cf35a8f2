"""The rows that are scored, loaded and encoded once however many models and masks meet them.

rows = scored_rows(model, task, tokenizer, Scoring(limit=500))
full = evaluate_rows(model, rows, tokenizer=tokenizer, scoring=scoring)[0]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.models.batches import TOKENS, batches_for
from headcount.models.find import unwrap
from headcount.models.hooks import evaluating
from headcount.tasks import Task
from headcount.tasks.as_rows import LABELS, TAKEN, Data, as_rows
from headcount.tasks.encoding import EncodedRows, rows_fingerprint
from headcount.tasks.kinds import kind_of, task_kind
from headcount.tasks.loading import match
from headcount.tasks.rows import ScoredRows, row_length, rows_of, scored_fingerprint
from headcount.tasks.task import Examples, sample
from headcount.training.forward import run_masks
from headcount.training.scoring import Scoring

PARTS = ("input_ids", "token_type_ids", "attention_mask", *LABELS)
"""What is read of a batch."""


def scored_rows(
    model: PreTrainedModel, task: Task, tokenizer: PreTrainedTokenizerBase, scoring: Scoring
) -> ScoredRows:
    """Load and encode the rows of `scoring`, truncated to what fits into the model."""
    split = scoring.split or task.evaluation
    match(model, tokenizer)
    examples, rows = rows_of(
        model,
        task,
        tokenizer,
        split,
        limit=scoring.limit,
        seed=scoring.seed,
        max_length=scoring.max_length,
    )
    kind = task_kind(task.kind)
    whole = task.packed or task.window is not None or kind.whole or kind.divides
    reference = run_masks(model, rows, kind, None, tokens=TOKENS)[0] if kind.compares else None
    return ScoredRows(
        task=task,
        split=split,
        examples=examples,
        rows=rows,
        order=kind.class_order(model, task, examples.labels),
        reference=reference,
        fingerprint=scored_fingerprint(task, examples, rows),
        length=None if whole else row_length(model, task, scoring.max_length),
    )


def given_rows(
    model: PreTrainedModel, data: Data, tokenizer: PreTrainedTokenizerBase | None, scoring: Scoring
) -> ScoredRows:
    """Rows that belong to no task, with labels as the model numbers them, by what it predicts."""
    if scoring.split is not None:
        raise UsageError(f"Only a task has splits: rows have no '{scoring.split}'.")
    rows = _unpadded(as_rows(model, data, tokenizer=tokenizer, max_length=scoring.max_length))
    if scoring.limit is not None:
        rows = rows.take(sample(rows.count, scoring.limit, scoring.seed))
    bare: Any = unwrap(model)
    batch = next(batches_for(bare, rows.take([0])))
    with torch.inference_mode(), evaluating(bare):
        answers = getattr(bare(**batch.inputs), "logits", None)
    if answers is None:
        raise UsageError(f"{type(bare).__name__} has no logits to score rows by: pass a task.")
    labels = batch.inputs["input_ids"] if batch.labels is None else batch.labels
    kind = kind_of(bare, answers, labels)
    rows, names = kind.given(bare, rows, answers)
    task = Task(
        name="rows",
        kind=kind.name,
        texts=("text",),
        labels=names,
        metrics=kind.metrics,
        loader=_no_splits,
        splits=("given",),
        evaluation="given",
    )
    return ScoredRows(
        task=task,
        split="given",
        examples=Examples(
            ([None] * len(rows),), rows.labels if isinstance(rows.labels, np.ndarray) else None
        ),
        rows=rows,
        order=np.arange(len(names)) if names else None,
        fingerprint=rows_fingerprint(rows),
    )


def _unpadded(rows: EncodedRows | Iterable[Mapping[str, Any]]) -> EncodedRows:
    """The rows of batches, without their padding."""
    if isinstance(rows, EncodedRows):
        return rows
    columns: dict[str, list[object]] = {}
    for batch in rows:
        if not isinstance(batch, Mapping) or np.ndim(batch.get("input_ids", 0)) != 2:
            raise UsageError(f"Rows to score have tokens (input_ids): {TAKEN}.")
        for name in PARTS:
            if name in batch:
                columns.setdefault(name, []).extend(torch.as_tensor(batch[name]).tolist())
    if len({len(column) for column in columns.values()}) > 1:
        raise UsageError("The batches do not all have the same tensors.")
    unpadded = as_rows(None, columns)
    assert isinstance(unpadded, EncodedRows)
    return unpadded


def _no_splits(split: str) -> Examples:
    raise UsageError("These rows belong to no task, and have no splits.")
