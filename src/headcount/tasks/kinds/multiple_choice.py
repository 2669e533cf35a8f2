"""One of several continuations of a prompt: the one that the model finds likeliest."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.models.batches import TARGETS, ModelBatch
from headcount.tasks.encoding import IGNORED, EncodedRows, RowOptions, padded_rows
from headcount.tasks.kinds.kind import Losses, PredictionTable, TaskKind, entropies
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.task import Examples


class MultipleChoice(TaskKind):
    """A row is a prompt with one choice; the choices of an example are its classes.

    The logit of a class is the log-likelihood of the choice, summed over its tokens. A prompt and
    a choice are joined by a space, unless the prompt ends with white space; it belongs to the
    choice, as in lm-evaluation-harness. The first row of an example has its label.
    """

    name: ClassVar = "multiple-choice"
    head: ClassVar = "text"
    saved_as: ClassVar = (
        "ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel", "EncoderDecoderModel",
    )  # fmt: skip
    metrics: ClassVar = ("acc", "acc_norm")
    whole: ClassVar = True
    writes: ClassVar = True

    def encode(
        self, examples: Examples, processor: PreTrainedTokenizerBase, options: RowOptions
    ) -> EncodedRows:
        """A decoder reads the prompt and the choice; beside an encoder it writes the choice."""
        lists = [json.loads(str(text)) for text in examples.texts[1]]
        sizes = [len(choices) for choices in lists]
        prompts = [str(prompt) for prompt in examples.texts[0]]
        starts = [prompt.rstrip() for prompt in prompts]
        endings = [
            (prompt[len(start) :] or " ") + choice
            for prompt, start, choices in zip(prompts, starts, lists, strict=True)
            for choice in choices
        ]
        numbers = np.repeat(np.arange(len(lists)), sizes)
        if options.decoder:
            ids, targets = _beside(processor, starts, endings, numbers)
        else:
            ids, targets = _behind(processor, starts, endings, numbers)
        for row, (read, written) in enumerate(zip(ids, targets, strict=True)):
            if (longest := max(len(read), len(written))) > options.length:
                example = int(numbers[row])
                raise UsageError(
                    f"Choice {row - int(np.argmax(numbers == example))} of the prompt "
                    f"{starts[example]!r:.60} takes {longest} tokens with it, and the model reads "
                    f"{options.length} at most: leave the row out, or shorten its prompt."
                )
        labels = None
        if examples.labels is not None:
            labels = np.full(len(numbers), IGNORED, dtype=np.int64)
            labels[np.cumsum([0, *sizes[:-1]])] = examples.labels
        rows = padded_rows({"input_ids": ids, TARGETS: targets}, labels, processor)
        return replace(
            rows,
            padding=rows.padding | {TARGETS: IGNORED},
            left=rows.left and not options.decoder,
            examples=numbers,
        )

    def require_labels(self, answers: Tensor, labels: Tensor) -> None:
        """One label a row."""
        self.require_as_many(answers.shape[:1], labels, labels.shape == answers.shape[:1])

    def losses(
        self, answers: Tensor, batch: ModelBatch, *, smoothing: float = 0.0, total: bool = False
    ) -> Tensor:
        """(row,) cross-entropy of the choices, at the first row of an example."""
        labels = batch.labels
        assert labels is not None
        logs, firsts, group = _log_probabilities(answers, batch)
        right = (firsts[group] + labels[firsts][group]) == torch.arange(
            len(labels), device=labels.device
        )
        weights = right * (1 - smoothing) + smoothing / torch.bincount(group)[group]
        counts = self.counts(labels)[firsts]
        by_example = logs.new_zeros(len(firsts)).index_add(0, group, -logs * weights)
        losses = torch.zeros_like(logs).index_put((firsts,), by_example * counts)
        return losses.sum() if total else losses

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """A choice drawn for every example, by the softmax of the log-likelihoods."""
        logs, firsts, group = _log_probabilities(answers.detach(), batch)
        within = torch.arange(len(group), device=group.device) - firsts[group]
        table = torch.zeros(len(firsts), int(within.max()) + 1, dtype=logs.dtype)
        table[group.cpu(), within.cpu()] = logs.exp().cpu()
        drawn = torch.multinomial(table, 1, generator=generator)[:, 0]
        labels = torch.full_like(group, IGNORED)
        labels[firsts] = drawn.to(group.device)
        return labels

    def read(self, answers: Tensor, batch: ModelBatch) -> Tensor:
        """(row, 1) the log-likelihood of the choice."""
        return _log_likelihoods(answers, batch)[:, None]

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """(example, 2) whether the likeliest choice is right, as it is and by its letters."""
        labels = scored.examples.labels
        assert labels is not None
        lists = [json.loads(str(text)) for text in scored.examples.texts[1]]
        groups = [kept[rows, 0] for rows in scored.rows.rows_of(range(len(scored)))]
        plain = np.array([values.argmax() for values in groups])
        lengths = [np.array([len(choice) for choice in choices]) for choices in lists]
        normed = np.array(
            [(values / length).argmax() for values, length in zip(groups, lengths, strict=True)]
        )
        losses = [
            np.logaddexp.reduce(values) - values[label]
            for values, label in zip(groups, labels, strict=True)
        ]
        return Outcome(
            np.column_stack([plain == labels, normed == labels]).astype(float), np.ones(len(labels))
        ), {
            "row": np.arange(len(labels)),
            "label": labels,
            "prediction": plain,
            "prediction_norm": normed,
            "loss": np.array(losses),
            "log_likelihoods": [json.dumps(values.tolist()) for values in groups],
        }

    def kept_losses(self, table: PredictionTable, scored: ScoredRows) -> Losses:
        """Cross-entropy of the choices."""
        return table["loss"], np.ones(len(table["loss"]))


def _behind(
    tokenizer: PreTrainedTokenizerBase,
    starts: list[str],
    endings: list[str],
    numbers: np.ndarray,
) -> tuple[list[list[int]], list[list[int]]]:
    """(row, token) all but the last token of the text, and the choice's where they are next.

    The tokens of a choice are those that the whole text has more than its prompt.
    """
    added: list[int] = tokenizer("")["input_ids"]
    begin = added[: added[:1] == [tokenizer.bos_token_id]]
    wholes = [starts[number] + ending for number, ending in zip(numbers, endings, strict=True)]
    contexts, texts = _ids(tokenizer, starts), _ids(tokenizer, wholes)
    ids, targets = [], []
    for number, text in zip(numbers, texts, strict=True):
        start = [] if text[:1] == begin else begin  # a prompt may have it
        row = start + text
        first = max(1, min(len(start) + len(contexts[number]), len(row) - 1))
        if len(row) < 2:
            raise UsageError(f"The prompt {starts[number]!r:.60} has no tokens in this tokenizer.")
        ids.append(row[:-1])
        targets.append([IGNORED] * (first - 1) + row[first:])
    return ids, targets


def _beside(
    tokenizer: PreTrainedTokenizerBase,
    starts: list[str],
    endings: list[str],
    numbers: np.ndarray,
) -> tuple[list[list[int]], list[list[int]]]:
    """(row, token) the prompt's tokens, and the choice's, without an end."""
    contexts, targets = _ids(tokenizer, starts, special=True), _ids(tokenizer, endings)
    for ending, target in zip(endings, targets, strict=True):
        if not target:
            raise UsageError(f"The choice {ending.strip()!r:.60} has no tokens in this tokenizer.")
    return [contexts[number] for number in numbers], targets


def _ids(
    tokenizer: PreTrainedTokenizerBase, texts: list[str], *, special: bool = False
) -> list[list[int]]:
    out = tokenizer(texts, add_special_tokens=special, verbose=False)
    return out["input_ids"]


def _log_likelihoods(answers: Tensor, batch: ModelBatch) -> Tensor:
    """(row,) of the targets, summed over tokens."""
    assert batch.targets is not None
    return -entropies(answers, batch.targets).double().sum(1)


def _log_probabilities(answers: Tensor, batch: ModelBatch) -> tuple[Tensor, Tensor, Tensor]:
    """(row,) the log-probability of each choice among those of its example; (example,) the first
    row of each; (row,) the example."""
    assert batch.examples is not None
    values = _log_likelihoods(answers, batch)
    _, group, sizes = batch.examples.unique_consecutive(return_inverse=True, return_counts=True)
    firsts = sizes.cumsum(0) - sizes
    most = values.detach().new_full((len(firsts),), -torch.inf)
    most = most.scatter_reduce(0, group, values.detach(), "amax")
    sums = values.new_zeros(len(firsts)).index_add(0, group, (values - most[group]).exp())
    return values - most[group] - sums.log()[group], firsts, group
