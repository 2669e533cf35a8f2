"""The rows that are scored, loaded and encoded once however many models and masks meet them.

rows = scored_rows(model, task, tokenizer, Scoring(limit=500))
full = evaluate_rows(model, rows, tokenizer=tokenizer, scoring=scoring)[0]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from headcount.errors import UsageError
from headcount.models.batches import batches_for
from headcount.models.find import unwrap
from headcount.models.hooks import evaluating
from headcount.sensitivity.losses import kind_of
from headcount.tasks import Task
from headcount.tasks.door import LABELS, TAKEN, Data, rows_for
from headcount.tasks.encoding import Encoded, rows_fingerprint
from headcount.tasks.loading import class_names, class_order, match, room
from headcount.tasks.sampling import rows_of
from headcount.tasks.task import Examples, sample
from headcount.training.scoring import Scoring

METRICS = {
    "classification": "accuracy",
    "regression": "spearman",
    "masked-lm": "perplexity",
    "causal-lm": "perplexity",
}
"""How rows that belong to no task are scored."""
PARTS = ("input_ids", "token_type_ids", "attention_mask", *LABELS)
"""What is read of a batch."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredRows:
    """The rows of one split of a task as tokens, for models with the same classes."""

    task: Task
    split: str
    examples: Examples
    rows: Encoded
    order: np.ndarray | None = None
    """(task class,) the model's number for it; None without classes."""
    fingerprint: str
    """What was asked, in 16 digits: texts and labels, or in language modelling the very tokens."""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, numbers: np.ndarray) -> ScoredRows:
        """These rows, in this order."""
        rows, examples = self.rows.take(numbers), self.examples
        if len(examples) == len(self.rows):  # packed lines are blocks, and belong to no row
            examples = examples.take(numbers)
        name = _fingerprint(self.task, examples, rows)
        return replace(self, examples=examples, rows=rows, fingerprint=name)


def scored_rows(model: PreTrainedModel, task: Task, tokenizer: Any, scoring: Scoring) -> ScoredRows:
    """Load and encode what `scoring` asks for, as much of a row as fits into the model."""
    split = scoring.split or task.evaluation
    match(model, tokenizer)
    examples, rows = rows_of(
        task,
        tokenizer,
        split,
        limit=scoring.limit,
        seed=scoring.seed,
        max_length=room(model, scoring.max_length),
    )
    order = None
    if task.kind == "classification":
        order = class_order(model, task, examples.labels)
    return ScoredRows(
        task=task,
        split=split,
        examples=examples,
        rows=rows,
        order=order,
        fingerprint=_fingerprint(task, examples, rows),
    )


def given_rows(model: PreTrainedModel, data: Data, tokenizer: Any, scoring: Scoring) -> ScoredRows:
    """Rows that belong to no task, with labels as the model numbers them, by what it predicts."""
    if scoring.split is not None:
        raise UsageError(f"Only a task has splits: rows have no '{scoring.split}'.")
    rows = _unpadded(rows_for(model, data, tokenizer=tokenizer, max_length=scoring.max_length))
    if scoring.limit is not None:
        rows = rows.take(sample(len(rows), scoring.limit, scoring.seed))
    kind = _kind(model, rows)
    if rows.labels is None:  # a causal language model is asked for every token of its own
        rows = replace(rows, labels=[list(ids) for ids in rows.columns["input_ids"]])
    labels = rows.labels if isinstance(rows.labels, np.ndarray) else None
    names: tuple[str, ...] = ()
    if kind == "classification" and labels is not None:
        names = tuple(class_names(unwrap(model).config))
        _require_classes(labels, names)
    task = Task(
        name="rows", kind=kind, texts=("text",), labels=names, metrics=(METRICS[kind],),
        loader=_no_splits, splits=("given",), evaluation="given",
    )  # fmt: skip
    return ScoredRows(
        task=task,
        split="given",
        examples=Examples(([None] * len(rows),), labels),
        rows=rows,
        order=np.arange(len(names)) if names else None,
        fingerprint=rows_fingerprint(rows),
    )


def _fingerprint(task: Task, examples: Examples, rows: Encoded) -> str:
    if task.kind in ("masked-lm", "causal-lm"):
        return rows_fingerprint(rows)
    labels = None if examples.labels is None else examples.labels.tolist()
    content = json.dumps([[list(column) for column in examples.texts], labels])
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def _unpadded(rows: Encoded | Iterable[Mapping[str, Any]]) -> Encoded:
    """The rows of batches, without their padding."""
    if isinstance(rows, Encoded):
        return rows
    columns: dict[str, list[Any]] = {}
    for batch in rows:
        if not isinstance(batch, Mapping) or np.ndim(batch.get("input_ids", 0)) != 2:
            raise UsageError(f"Rows to score have tokens (input_ids): {TAKEN}.")
        for name in PARTS:
            if name in batch:
                columns.setdefault(name, []).extend(torch.as_tensor(batch[name]).tolist())
    if len({len(column) for column in columns.values()}) > 1:
        raise UsageError("The batches do not all have the same tensors.")
    found = rows_for(None, columns)
    assert isinstance(found, Encoded)
    return found


def _kind(model: PreTrainedModel, rows: Encoded) -> Any:
    """What the model predicts, seen from its answer to the first row."""
    bare = unwrap(model)
    inputs, labels = next(batches_for(bare, rows.take([0])))
    with torch.inference_mode(), evaluating(bare):
        logits = bare(**inputs).logits
    kind = kind_of(bare, logits, inputs["input_ids"] if labels is None else labels)
    if kind not in METRICS:
        raise UsageError("Translations are scored against texts: pass a translation task.")
    if labels is None and kind != "causal-lm":
        raise UsageError("Rows to score have labels: add 'labels', or pass a task.")
    if labels is not None and (labels.ndim == 2) != (logits.ndim == 3):
        per = {True: "a label for every token", False: "one label a row"}
        raise UsageError(
            f"{type(bare).__name__} is scored on {per[logits.ndim == 3]}, and these rows have "
            f"{per[labels.ndim == 2]}."
        )
    if kind == "regression" and logits.shape[1] > 1:
        raise UsageError(f"Labels are numbers of the model's {logits.shape[1]} classes.")
    return kind


def _require_classes(labels: np.ndarray, names: tuple[str, ...]) -> None:
    unknown = sorted({int(label) for label in labels if not 0 <= label < len(names)})
    if unknown:
        raise UsageError(
            f"The rows have the label {unknown[0]}, and the model's {len(names)} classes are "
            f"numbered from 0 to {len(names) - 1}."
        )


def _no_splits(split: str) -> Examples:
    raise UsageError("These rows belong to no task, and have no splits.")
