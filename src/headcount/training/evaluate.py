"""Score a model on a task: `hc.evaluate(model, "sst2")`, with all heads or with masks.

    full   = evaluate(model, task)                # Evaluation: score, 95 % interval, n, seconds
    scores = evaluate_many(model, task, masks)    # one Evaluation per mask, in one pass
    loss   = difference(full, scores[0])          # Difference: −0.003 [−0.011, +0.004]

Rows are sorted by length and padded as little as possible.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
from transformers import PreTrainedModel

from headcount.errors import UsageError
from headcount.files import require_fields
from headcount.heads import Mask
from headcount.tasks import Task, bleu, metrics, open_task
from headcount.tasks.encoding import Encoded, rows_fingerprint
from headcount.tasks.loading import class_order, match, require_finite, room, tokenizer_of
from headcount.tasks.metrics import Difference, Outcome, Score, score
from headcount.tasks.sampling import rows_of
from headcount.tasks.task import Examples, Limit
from headcount.training.forward import run_masks
from headcount.training.translate import translate

TOKENS = {"cpu": 1024, "gpu": 16384}
"""Tokens per batch: on a CPU more no longer fit its caches, measured on MiniLM."""
LOGITS = 2**25
"""Most logits of a language model held at once: 128 MB in single precision."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores of one model, or of one mask of it, on one split of a task."""

    task: str
    split: str
    scores: tuple[Score, ...]
    """The task's score first, then what else it is measured by."""
    n: int
    """Rows scored."""
    seconds: float
    """Time of the model alone; many masks share theirs evenly."""
    seed: int = 0
    mask: Mask | None = None
    signature: str | None = None
    """What a BLEU score depends on, in sacrebleu's words."""
    predictions: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Columns with one value per row: label, prediction, and what led to it."""
    rows: str | None = None
    """A fingerprint of the rows that were scored: who has the same can be compared row by row."""
    outcome: Outcome | None = field(default=None, repr=False, compare=False)
    """What was predicted and what was right, for `difference`; not in the JSON."""

    @property
    def score(self) -> float:
        """The task's score."""
        return self.scores[0].value

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.scores))
        return f"{self.task} {self.split}: {numbers} (n={self.n}, {self.seconds:.1f} s)"

    def to_json(self) -> dict[str, Any]:
        """A plain dict, without the predictions; what is undefined is None."""
        scores = [each.to_json() for each in self.scores]
        data = {
            "task": self.task,
            "split": self.split,
            "metric": self.scores[0].metric,
            "score": scores[0]["value"],
            "low": scores[0]["low"],
            "high": scores[0]["high"],
            "scores": {each["metric"]: each for each in scores},
            "n": self.n,
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
            "rows": self.rows,
        }
        if self.mask is not None:
            data["heads_kept"] = self.mask.pattern
        if self.signature is not None:
            data["signature"] = self.signature
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Evaluation:
        """The scores that `to_json` wrote; mask and predictions are not among them."""
        types = {"task": str, "split": str, "scores": dict, "n": int, "seconds": float, "seed": int}
        some = {"signature": str | None, "rows": str | None}
        require_fields(data, types | some, "This is no evaluation", optional=some)
        if not data["scores"]:
            raise UsageError("This is no evaluation: it has no scores.")
        return cls(
            task=data["task"],
            split=data["split"],
            scores=tuple(Score.from_json(each) for each in data["scores"].values()),
            n=data["n"],
            seconds=data["seconds"],
            seed=data["seed"],
            signature=data.get("signature"),
            rows=data.get("rows"),
        )

    def save_predictions(self, path: str | Path) -> Path:
        """Write the predictions as a Parquet file, whole or not at all."""
        return save_predictions([self], path)


def save_predictions(found: Sequence[Evaluation], path: str | Path) -> Path:
    """The predictions of several evaluations in one Parquet file; masks are told apart by name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    tables = []
    for each in found:
        columns = {
            name: list(values) if getattr(values, "ndim", 1) > 1 else values
            for name, values in each.predictions.items()
        }
        if len(found) > 1:
            pattern = each.mask.pattern if each.mask is not None else "all"
            columns["heads_kept"] = [pattern] * len(columns["row"])
        tables.append(pa.table(columns))
    pq.write_table(pa.concat_tables(tables), partial)
    return partial.rename(path)


def difference(
    before: Evaluation,
    after: Evaluation,
    *,
    metric: str | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> Difference:
    """By how much the score changed, with the interval of the difference on the same rows.

    `metric` is one of the task's, its score when left out.
    """
    if (before.task, before.split) != (after.task, after.split):
        raise UsageError(
            "A difference needs the same rows before and after, not "
            f"{before.task} {before.split} and {after.task} {after.split}."
        )
    if before.outcome is None or after.outcome is None:
        raise UsageError(
            "A difference needs what was predicted for each row, which a saved evaluation does "
            "not have: evaluate both models again."
        )
    if before.rows != after.rows:
        raise UsageError(
            f"A difference needs the same rows of {before.task} {before.split} before and after, "
            f"not {before.n} and {after.n} others: evaluate both with one limit, seed and length."
        )
    metric = metric or before.scores[0].metric
    return metrics.difference(metric, before.outcome, after.outcome, draws=draws, seed=seed)


@overload
def evaluate(
    model: PreTrainedModel, task: str | Task, masks: None = None, **settings: Any
) -> Evaluation: ...
@overload
def evaluate(
    model: PreTrainedModel, task: str | Task, masks: Mask, **settings: Any
) -> Evaluation: ...
@overload
def evaluate(
    model: PreTrainedModel, task: str | Task, masks: Sequence[Mask], **settings: Any
) -> list[Evaluation]: ...
def evaluate(
    model: PreTrainedModel,
    task: str | Task,
    masks: Mask | Sequence[Mask] | None = None,
    **settings: Any,
) -> Evaluation | list[Evaluation]:
    """Score a model as it is, with one mask, or with several; settings as in `evaluate_many`."""
    if masks is None or isinstance(masks, Mask):
        return _evaluate(model, task, None if masks is None else [masks], **settings)[0]
    return evaluate_many(model, task, masks, **settings)


def evaluate_many(
    model: PreTrainedModel, task: str | Task, masks: Sequence[Mask], **settings: Any
) -> list[Evaluation]:
    """Score every mask in one pass over the data.

    Settings: tokenizer, split, limit, seed (of the sample, the masking and the interval),
    max_length, tokens (per batch), draws (of the bootstrap), beams (translation), share (false
    runs the masks one by one).
    """
    if not masks:
        raise UsageError("There are no masks to evaluate.")
    return _evaluate(model, task, masks, **settings)


def _evaluate(
    model: PreTrainedModel,
    task: str | Task,
    masks: Sequence[Mask] | None,
    *,
    tokenizer: Any = None,
    split: str | None = None,
    limit: Limit = None,
    seed: int = 0,
    max_length: int = 128,
    tokens: int | None = None,
    draws: int = 1000,
    beams: int = 1,
    share: bool = True,
) -> list[Evaluation]:
    task = open_task(task)
    tokenizer = tokenizer if tokenizer is not None else tokenizer_of(model)
    split = split or task.evaluation
    match(model, tokenizer)
    require_finite(model)
    examples, rows = rows_of(
        task, tokenizer, split, limit=limit, seed=seed, max_length=room(model, max_length)
    )
    order = None
    if task.kind == "classification":
        order = class_order(model, task, examples.labels)
    if tokens is None:
        tokens = TOKENS["cpu" if next(model.parameters()).device.type == "cpu" else "gpu"]
    started = time.monotonic()
    if task.kind == "translation":
        texts = translate(model, rows, tokenizer, masks, beams=beams, tokens=tokens)
        results = [_translated(examples, said) for said in texts]
    else:
        if task.kind in ("masked-lm", "causal-lm"):
            tokens = max(1, min(tokens, LOGITS // len(tokenizer)))
        tables = run_masks(model, rows, task.kind, masks, tokens=tokens, share=share)
        for place, table in enumerate(tables):
            _require_finite_answers(table, masks[place] if masks else None)
        results = [_outcome(task, examples, table, order) for table in tables]
    seconds = (time.monotonic() - started) / len(results)
    fingerprint = _fingerprint(task, examples, rows)
    return [
        Evaluation(
            task=task.name,
            split=split,
            scores=tuple(score(name, outcome, draws=draws, seed=seed) for name in task.metrics),
            n=len(outcome),
            seconds=seconds,
            seed=seed,
            mask=None if masks is None else masks[place],
            signature=bleu.signature() if task.kind == "translation" else None,
            predictions=predictions,
            rows=fingerprint,
            outcome=outcome,
        )
        for place, (outcome, predictions) in enumerate(results)
    ]


def _fingerprint(task: Task, examples: Examples, rows: Encoded) -> str:
    """What was asked, in 16 digits: texts and labels, or in language modelling the very tokens."""
    if task.kind in ("masked-lm", "causal-lm"):
        return rows_fingerprint(rows)
    labels = None if examples.labels is None else examples.labels.tolist()
    content = json.dumps([[list(column) for column in examples.texts], labels])
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def _require_finite_answers(table: np.ndarray, mask: Mask | None) -> None:
    wrong = int((~np.isfinite(table)).any(axis=1).sum())
    if wrong:
        masked = "" if mask is None else f" with heads {mask.pattern}"
        raise UsageError(
            f"The model cannot be scored{masked}: what it says is NaN or infinite for {wrong} of "
            f"{len(table)} rows, although its weights are numbers. Numbers grow too large inside "
            "it: load it in float32."
        )


def _outcome(
    task: Task, examples: Examples, table: np.ndarray, order: np.ndarray | None
) -> tuple[Outcome, dict[str, Any]]:
    if task.kind in ("masked-lm", "causal-lm"):
        outcome = Outcome(table[:, :2], table[:, 2])
        return outcome, {
            "row": np.arange(len(table)),
            "correct": table[:, 0].astype(int),
            "nll": table[:, 1],
            "tokens": table[:, 2].astype(int),
        }
    assert examples.labels is not None
    labels = examples.labels
    if order is None:
        predictions = table[:, 0]
        return Outcome(predictions, labels), {
            "row": np.arange(len(labels)),
            "label": labels,
            "prediction": predictions,
        }
    # a class of the model that the task does not have is one more class, and always wrong
    back = np.full(table.shape[1], len(order))
    back[order[order >= 0]] = np.flatnonzero(order >= 0)
    predictions = back[table.argmax(1)]
    names = np.array([*task.labels, "(other)"])
    return Outcome(predictions, labels), {
        "row": np.arange(len(labels)),
        "label": names[labels],
        "prediction": names[predictions],
        "logits": table,
    }


def _translated(examples: Examples, said: list[str]) -> tuple[Outcome, dict[str, Any]]:
    source, target = (list(column) for column in examples.texts)
    wanted = [str(text) for text in target]
    return Outcome(said, wanted), {
        "row": np.arange(len(said)),
        "source": source,
        "label": wanted,
        "prediction": said,
    }
