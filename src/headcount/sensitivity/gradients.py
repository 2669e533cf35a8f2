"""Head importance: `hc.importance(model, data, normalize="l1")`. What it means: `__init__.py`.

Every example has its own gates, so one backward pass gives the gradients of all examples of a
batch. Only gates are differentiated: no gradient of a weight is ever computed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from headcount.base.errors import UsageError
from headcount.heads import Layout, Mask, Scores
from headcount.heads.as_mask import MaskLike
from headcount.models.batches import TOKENS, ModelBatch, batches_for
from headcount.models.find import layout, mask_for, unwrap
from headcount.models.gates import gate, open_gates
from headcount.models.hooks import evaluating, held
from headcount.sensitivity.options import require_norm
from headcount.tasks import TASKS, Task, open_task
from headcount.tasks.as_rows import Data, Rows, as_rows
from headcount.tasks.kinds import kind_of, task_kind
from headcount.tasks.kinds.kind import TaskKind
from headcount.tasks.opening import model_for

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, repr=False)
class ImportanceResult(Scores):
    """Scores of heads with their standard errors over examples."""

    stderr: tuple[float, ...] = ()
    """One per score, in the same order."""
    n: int = 0
    """Examples that the scores are means over."""
    loss: float = float("nan")
    """The mean loss of these examples."""
    kind: str = ""
    """Which loss: classification, regression, masked-lm, causal-lm, text-to-text, translation …"""
    normalize: str = "none"

    def normalized(self, normalize: str) -> ImportanceResult:
        """The same scores, divided in every layer by the layer's ℓ1 or ℓ2 norm.

        >>> scores = ImportanceResult(Layout.of(encoder=[2]), (1.0, 3.0), (0.1, 0.1), 9)
        >>> scores.normalized("l1").values
        (0.25, 0.75)
        """
        if self.normalize != "none":
            raise UsageError(f"These scores are normalised already, by {self.normalize}.")
        divisors = layer_norms(self, require_norm(normalize))
        values, stderr = (
            tuple(value / by for value, by in zip(numbers, divisors, strict=True))
            for numbers in (self.values, self.stderr)
        )
        return replace(self, values=values, stderr=stderr, normalize=normalize)

    def to_json(self) -> dict[str, object]:
        """A plain dict that `Importance.from_json` reads back."""
        errors = Scores(self.layout, self.stderr).by_layer()
        more = {"n": self.n, "loss": self.loss, "kind": self.kind, "normalize": self.normalize}
        return {**super().to_json(), "stderr": errors, **more}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ImportanceResult:
        """The scores that `to_json` wrote."""
        scores = Scores.from_json(data)
        if "stderr" not in data:
            raise UsageError("These scores have no standard errors: no importance.")
        errors = Scores.from_json({"layout": data["layout"], "scores": data["stderr"]})
        names = ("n", "loss", "kind", "normalize")
        return cls(scores.layout, scores.values, errors.values, *(data[name] for name in names))


def importance(
    model: nn.Module | str | os.PathLike[str],
    data: Data,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    normalize: str = "none",
    split: str | None = None,
    samples: int | None = 1000,
    max_length: int = 128,
    seed: int = 0,
    mask: MaskLike | Tensor | None = None,
    kind: str | None = None,
    tokens: int = TOKENS,
    report: Callable[[int], None] | None = None,
) -> ImportanceResult:
    """E |∂L/∂ξ| of every head over the examples of `data`, which has labels.

    The rows of an embedding task have none: the loss is then the squared distance to the model's
    own embedding with normal noise, drawn by `seed`, so that heads are ranked by how far the
    embedding moves with their gate.

    `model` may be named where `data` is a task; `data` is a task or its name, rows of tokens or
    texts with labels, or batches as a DataLoader gives them; texts need the `tokenizer`. Of a task
    a seeded sample of `samples` rows is taken, of the train split or the `split` that is named.
    `mask` closes heads while the others are scored (its closed heads get what opening them would
    change); it has any form that `hc.remove` takes. `kind` names the loss where the model's
    answer does not tell; `report` is called with the examples done so far.
    """
    require_norm(normalize)
    if isinstance(data, str) and data in TASKS:
        data = open_task(data)
    bare = unwrap(model_for(model, "hc.importance", data if isinstance(data, Task) else None))
    heads = layout(bare)
    closed = None if mask is None else mask_for(bare, mask)
    data = as_rows(
        bare,
        data,
        tokenizer=tokenizer,
        split=split,
        limit=samples,
        seed=seed,
        max_length=max_length,
    )
    kind = kind or getattr(data, "kind", None)
    sums = np.zeros((2, len(heads)))  # of |gradient| and of its square
    total = n = 0
    used = None if kind is None else task_kind(kind)
    batches = gate_gradients(bare, heads, data, closed=closed, kind=used, seed=seed, tokens=tokens)
    with closing(batches):
        for used, gradients, losses in batches:  # noqa: B007 (the last one is used below)
            sizes = gradients.abs()
            sums += torch.stack([sizes.sum(0), sizes.square().sum(0)]).cpu().numpy()
            total += float(losses.detach().double().sum())
            n += len(gradients)
            if report is not None:
                report(n)
    if not n or used is None:
        raise UsageError("There is nothing to take a loss of: no example has a label that counts.")
    if not np.isfinite(sums).all():
        raise UsageError("The loss or its gradient is not a number (NaN or infinite).")
    mean = sums[0] / n
    spread = np.sqrt(np.maximum(sums[1] / n - mean**2, 0) / max(n - 1, 1))
    scores = ImportanceResult(heads, tuple(mean), tuple(spread), n, total / n, used.name)
    return scores if normalize == "none" else scores.normalized(normalize)


def gate_gradients(
    model: nn.Module,
    heads: Layout,
    data: Rows,
    *,
    closed: Mask | None = None,
    kind: TaskKind | None = None,
    seed: int = 0,
    tokens: int = TOKENS,
) -> Generator[tuple[TaskKind, Tensor, Tensor]]:
    """Batch by batch: the kind of task, (example, head) ∂L/∂ξ of examples with labels, the losses.

    L is an example's mean loss over its labels, and ξ the gates; `closed` heads have 0.
    """
    generator = torch.Generator().manual_seed(seed)
    with evaluating(model), frozen(model):
        for batch in batches_for(model, data, tokens=tokens):
            draws = kind is not None and kind.unlabelled
            if batch.labels is None and not draws:
                raise UsageError("Importance needs labels: a batch has no 'labels'.")
            gates = _gates(model, heads, closed, _rows_in(batch))
            flat = [value for values in gates.values() for value in values]
            with gate(model, gates), torch.enable_grad():
                kind, answers = answers_of(model, batch, kind)
                if draws:
                    drawn = kind.sample_labels(answers, batch, generator)
                    batch = replace(batch, labels=drawn)
                losses, counts = example_losses(kind, answers, batch)
                grads = torch.autograd.grad(losses.sum(), flat, allow_unused=True)
            # a layer that the loss does not reach has no gradient: its heads do not matter
            known = [
                torch.zeros_like(g) if grad is None else grad
                for g, grad in zip(flat, grads, strict=True)
            ]
            # an example's rows share its gates: their gradients are added
            yield kind, by_example(torch.cat(known, dim=1).double(), batch)[counts], losses


def _rows_in(batch: ModelBatch) -> int:
    """How many rows a batch has."""
    if batch.labels is not None:
        return len(batch.labels)
    return len(next(value for value in batch.inputs.values() if isinstance(value, Tensor)))


def layer_norms(scores: Scores, normalize: str) -> list[float]:
    """For every head, the norm of its layer's scores; 1 where all of them are 0."""
    by_layer = scores.by_layer()
    power = {"none": 0, "l1": 1, "l2": 2}[normalize]
    norms = {
        (stack, layer): float(np.linalg.norm(values, power)) if power and values else 1.0
        for stack, layers in by_layer.items()
        for layer, values in enumerate(layers)
    }
    return [norms[head.stack, head.layer] or 1.0 for head in scores.layout]


def _gates(
    model: nn.Module, heads: Layout, mask: Mask | None, batch: int
) -> dict[str, list[Tensor]]:
    """A gate per example and head: 1, or 0 where the mask closes it."""
    weight = next(p for p in model.parameters() if p.is_floating_point())
    dtype = torch.promote_types(weight.dtype, torch.float32)
    gates = open_gates(heads, batch=batch, dtype=dtype, device=weight.device)
    if mask is not None:
        with torch.no_grad():
            for head in mask.dropped:
                gates[head.stack][head.layer][:, head.index] = 0.0
    return gates


def answers_of(
    model: nn.Module, batch: ModelBatch, kind: TaskKind | None
) -> tuple[TaskKind, Tensor]:
    """What the model predicts and its kind, seen from it where that is None.

    A model that predicts nothing is refused.
    """
    outputs: Any = model(**batch.inputs)
    if kind is None and hasattr(outputs, "start_logits"):
        kind = task_kind("question-answering")
    try:
        if kind is not None:
            answers = kind.predict(outputs, batch.inputs, model)
        elif hasattr(outputs, "prediction_logits"):  # a head for pre-training predicts words, too
            answers = outputs.prediction_logits
        else:
            answers = outputs.logits
    except AttributeError as error:
        raise UsageError(
            f"{type(model).__name__} has no loss: it predicts nothing ('logits'). Load it with a "
            "head for the task."
        ) from error
    if kind is None:
        labels = torch.zeros(len(answers), dtype=torch.long)
        kind = kind_of(model, answers, labels if batch.labels is None else batch.labels)
        if not hasattr(outputs, "prediction_logits"):
            answers = kind.predict(outputs, batch.inputs, model)
    return kind, answers


def example_losses(kind: TaskKind, answers: Tensor, batch: ModelBatch) -> tuple[Tensor, Tensor]:
    """(example,) the mean loss over its labels; (example,) which examples have any.

    >>> import torch
    >>> from headcount.tasks.kinds import task_kind
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    >>> batch = ModelBatch({}, torch.tensor([0, -100]))
    >>> example_losses(task_kind("classification"), logits, batch)
    (tensor([0.1269, 0.0000]), tensor([ True, False]))
    """
    labels = batch.labels
    assert labels is not None
    kind.require_labels(answers, labels)
    rows = len(answers)
    sums = by_example(kind.losses(answers, batch).reshape(rows, -1).sum(1), batch)
    number = by_example(kind.counts(labels).reshape(rows, -1).sum(1), batch)
    return sums / number.clamp_min(1), number > 0


def by_example(values: Tensor, batch: ModelBatch) -> Tensor:
    """(row, …) values as sums over the rows of each example, in the order of their numbers."""
    if batch.examples is None:
        return values
    numbers, places = batch.examples.unique(return_inverse=True)
    return values.new_zeros(len(numbers), *values.shape[1:]).index_add(0, places, values)


@contextmanager
def frozen(model: nn.Module) -> Generator[None]:
    """No gradient of any weight inside: less to remember and half the backward pass."""
    before = [(p, p.requires_grad) for p in model.parameters()]
    with held(model, "without gradients of its weights"):
        try:
            for parameter, _ in before:
                parameter.requires_grad_(False)
            yield
        finally:
            for parameter, trains in before:
                parameter.requires_grad_(trains)
