"""What a kind of task says of itself; a class derived from it states what is not the default.

A row is what a model is given at once, an example what is asked: a question with four answers is
four rows of one example (`EncodedRows.examples`). Answers and kept values have one entry a row;
`score` makes examples of them again.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch, counted_tokens, model_inputs
from headcount.tasks.encoding import IGNORED, EncodedRows, RowItem, RowOptions, tokenized
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Examples, Task

Losses = tuple[np.ndarray, np.ndarray]
"""(example,) summed losses, and how many labels each is a sum over."""
PredictionTable = dict[str, Any]
"""Columns by name, one entry for each example: arrays, or lists of texts."""


class TaskKind(Protocol):
    """A kind of task."""

    name: ClassVar[str]
    head: ClassVar[str]
    """What loads it: a name of `models.config.HEADS`, or an Auto class of transformers."""
    saved_as: ClassVar[tuple[str, ...]]
    """Parts of the names of classes that have such a head."""
    reads: ClassVar[tuple[str, ...]] = ("input_ids",)
    """What its rows are to a model; it takes at least one of them."""
    metrics: ClassVar[tuple[str, ...]] = ()
    """How rows that belong to no task are scored."""
    asks_tokens: ClassVar[bool] = False
    """Labels are tokens of the rows themselves: a row without any is left out."""
    generation: ClassVar[tuple[str, ...]] = ()
    """Inputs from which the model writes its answer; empty where one forward pass gives it."""
    whole: ClassVar[bool] = False
    """Rows are never truncated: one that does not fit into the model is refused."""
    divides: ClassVar[bool] = False
    """A long example is several rows, and nothing of it is left out."""
    writes: ClassVar[bool] = False
    """Any model that generates text has the head for it."""
    unit: ClassVar[str] = "nats"
    """What the loss is counted in."""
    nats: ClassVar[float] = 1.0
    """The loss times this is -log p, up to a constant."""
    rows_of_tables: ClassVar[bool] = True
    """Its data can be rows of a table or of JSON lines, and so what `hc.task` is given."""
    unlabelled: ClassVar[bool] = False
    """Labels of the loss are drawn from the model's own answers; no row has any."""
    logits: ClassVar[bool] = True
    """Answers are logits over their last axis: a probability for each class or word."""
    compares: ClassVar[bool] = False
    """Answers are scored beside those of the model that the rows were loaded for: texts alone are
    data, and calibration texts can be the task's."""

    def fits(self, model: nn.Module, answers: Tensor, labels: Tensor) -> bool:
        """Whether a model that answers so is of this kind; False is never guessed."""
        return False

    def generates(self, model: nn.Module) -> bool:
        """Whether the model writes its answer, from `generation`, instead of one forward pass."""
        return bool(self.generation)

    def config_changes(self, config: PreTrainedConfig, task: Task) -> dict[str, Any]:
        """What a new head for the task wants in the model's config."""
        return {}

    def encode(self, examples: Examples, processor: Any, options: RowOptions) -> EncodedRows:
        """The examples as rows: one text or a pair of texts each.

        `processor` is a `models.processors.Processor`: the model's tokenizer, or, in a kind of
        images or sound, what makes its inputs of them.
        """
        return tokenized(processor, *examples.texts, length=options.length, labels=examples.labels)

    def draw(self, row: RowItem, processor: Any, generator: np.random.Generator) -> RowItem:
        """A row as it is trained on in one epoch."""
        return row

    def class_order(
        self, model: PreTrainedModel, task: Task, labels: np.ndarray | None
    ) -> np.ndarray | None:
        """(task class,) -> the model's number for it; None without classes."""
        return None

    def given(
        self, model: PreTrainedModel, rows: EncodedRows, answers: Tensor
    ) -> tuple[EncodedRows, tuple[str, ...]]:
        """Rows that belong to no task, and the names of their classes; `answers` to the first."""
        if rows.labels is None:
            raise UsageError("Rows to score have labels: add 'labels', or pass a task.")
        per_token = isinstance(rows.labels, list)
        if per_token != (answers.ndim == 3):
            per = {True: "a label for every token", False: "one label a row"}
            raise UsageError(
                f"{type(model).__name__} is scored on {per[answers.ndim == 3]}, and these rows "
                f"have {per[per_token]}."
            )
        return rows, ()

    def inputs(self, model: nn.Module, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of a batch that the model takes."""
        return model_inputs(model, batch)

    def answers(self, outputs: Any) -> Tensor:
        """(row, …) the predictions in what the model's forward returns."""
        return outputs.logits

    def predict(self, outputs: Any, inputs: dict[str, Any], model: nn.Module) -> Tensor:
        """The predictions, where they also depend on what the model was given."""
        return self.answers(outputs)

    def distributions(self, answers: Tensor, batch: ModelBatch) -> Tensor:
        """(row, …, class) the predictions, as logits of one distribution over the last axis."""
        return answers

    def require_labels(self, answers: Tensor, labels: Tensor) -> None:
        """Refuse labels that are not of what the model answers."""
        self.require_as_many(answers.shape[:-1], labels, labels.shape == answers.shape[:-1])
        if labels.is_floating_point():
            raise UsageError(
                f"The loss '{self.name}' takes whole numbers as labels, not {labels.dtype}."
            )
        known, size = labels[labels != IGNORED], answers.shape[-1]
        if known.numel() and (known.min() < 0 or known.max() >= size):
            wrong = int(known.max() if known.max() >= size else known.min())
            raise UsageError(f"A label is {wrong}, and the model knows 0 to {size - 1}.")

    def require_as_many(self, answers: torch.Size, labels: Tensor, fits: bool) -> None:
        """Refuse other numbers of labels than of answers."""
        if not fits:
            raise UsageError(
                f"The loss '{self.name}' takes one label for every answer of the model: it gives "
                f"{' x '.join(map(str, answers))} answers, and there are "
                f"{' x '.join(map(str, labels.shape))} labels."
            )

    def counts(self, labels: Tensor) -> Tensor:
        """(row, …) which labels count."""
        return labels != IGNORED

    def losses(
        self, answers: Tensor, batch: ModelBatch, *, smoothing: float = 0.0, total: bool = False
    ) -> Tensor:
        """(row, …) the loss of every label, 0 where it does not count; or the `total` of all."""
        assert batch.labels is not None
        if total:
            return entropy_sum(answers, batch.labels, smoothing)
        return entropies(answers, batch.labels)

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """Labels drawn from what the model itself predicts; rows may have none of their own."""
        return draw_classes(answers, generator)

    def read(self, answers: Tensor, batch: ModelBatch) -> Tensor:
        """(row, number) what is kept of a forward pass."""
        return answers.double()

    def decode(self, kept: Any, processor: Any) -> Any:
        """What `read` kept of all rows, where that is numbers of tokens as texts."""
        return kept

    def score(self, kept: Any, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """What `read` kept of all rows (or the texts written) by example, and a table of it."""
        ...

    def kept_losses(self, table: PredictionTable, scored: ScoredRows) -> Losses | None:
        """The losses in a table of `score`; None where what is kept has none."""
        return None


def entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """(row, …) cross-entropies in single precision or better, 0 where a label does not count."""
    counts = labels != IGNORED
    # most tokens of a masked LM have no label: no softmax over the vocabulary for them
    labelled = logits[counts].to(torch.promote_types(logits.dtype, torch.float32))
    losses = functional.cross_entropy(labelled, labels[counts], reduction="none")
    return torch.zeros_like(labels, dtype=losses.dtype).masked_scatter(counts, losses)


def entropy_sum(logits: Tensor, labels: Tensor, smoothing: float, *, few: bool = False) -> Tensor:
    """The sum of cross-entropies in single precision; with `few` labels that count, of those."""
    labels = labels.reshape(-1)
    logits = logits.reshape(len(labels), -1)
    if few:
        counts = labels != IGNORED
        logits, labels = logits[counts], labels[counts]
    return functional.cross_entropy(
        logits.float(), labels, reduction="sum", ignore_index=IGNORED, label_smoothing=smoothing
    )


def draw_classes(logits: Tensor, generator: torch.Generator) -> Tensor:
    """(row, …) classes or words drawn from the prediction."""
    probabilities = logits.detach().softmax(-1).flatten(0, -2).cpu()
    drawn = torch.multinomial(probabilities, 1, generator=generator).view(logits.shape[:-1])
    return drawn.to(logits.device)


def where_labelled(drawn: Tensor, batch: ModelBatch, stack: str = "encoder") -> Tensor:
    """(row, token) words, where the batch has labels that count, or tokens that are no padding."""
    keep = counted_tokens(batch.inputs, stack, drawn.numel())
    if batch.labels is not None:
        keep = batch.labels != IGNORED
    return drawn if keep is None else drawn.masked_fill(~keep.view(drawn.shape), IGNORED)


class TokenKind(TaskKind, Protocol):
    """A kind whose labels are tokens of the rows themselves, scored by counts over tokens."""

    metrics: ClassVar = ("perplexity",)
    asks_tokens: ClassVar = True

    def read(self, answers: Tensor, batch: ModelBatch) -> Tensor:
        """(row, 3) correct tokens, summed -log p, and tokens with a label."""
        labels = batch.labels
        assert labels is not None
        counts = labels != IGNORED
        labelled, wanted = answers[counts].float(), labels[counts]
        right = (labelled.argmax(-1) == wanted).double()
        losses = functional.cross_entropy(labelled, wanted, reduction="none").double()
        empty = torch.zeros_like(labels, dtype=torch.float64)
        hits, nats = (empty.masked_scatter(counts, values) for values in (right, losses))
        return torch.stack([hits, nats, counts.double()], dim=-1).sum(1)

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """Counts over tokens, row by row."""
        return Outcome(kept[:, :2], kept[:, 2]), {
            "row": np.arange(len(kept)),
            "correct": kept[:, 0].astype(int),
            "nll": kept[:, 1],
            "tokens": kept[:, 2].astype(int),
        }

    def kept_losses(self, table: PredictionTable, scored: ScoredRows) -> Losses:
        """-log p, by token."""
        return table["nll"], table["tokens"].astype(float)
