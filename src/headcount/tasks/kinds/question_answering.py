"""The part of a context that answers a question; long contexts are several rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from transformers import (
    BatchEncoding,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.batches import ModelBatch
from headcount.tasks.encoding import IGNORED, EncodedRows, RowOptions, padded_rows
from headcount.tasks.kinds.kind import Losses, PredictionTable, TaskKind, draw_classes
from headcount.tasks.metrics import Outcome
from headcount.tasks.rows import ScoredRows
from headcount.tasks.squad import Answer, answer_scores, read_answers
from headcount.tasks.task import Examples, Task

BEST = 20
"""First and last tokens with the highest numbers of a row, among which its answer is."""
LONGEST = 30
"""Tokens of an answer at most, as in SQuAD's first systems and transformers' example."""
INPUTS = ("input_ids", "token_type_ids")
STARTS, ENDS = "starts", "ends"
"""Columns with the first letter of the context in a token, and the one behind its last."""
NOTHING = torch.finfo(torch.float32).min
"""The number of what cannot be an answer."""
_Row = tuple[dict[str, list[int]], list[int]]


class QuestionAnswering(TaskKind):
    """Two distributions over the tokens of a row: where the answer begins, and where it ends.

    The labels of a row are five tokens: first and last of the answer, the one that stands for no
    answer in this row, and first and last of the context. The loss is of the first two.
    """

    name: ClassVar = "question-answering"
    head: ClassVar = "question-answering"
    saved_as: ClassVar = ("ForQuestionAnswering",)
    metrics: ClassVar = ("answer_f1", "exact_match")
    rows_of_tables: ClassVar = False
    divides: ClassVar = True

    def config_changes(self, config: PreTrainedConfig, task: Task) -> dict[str, Any]:
        """Two numbers for every token."""
        return {"num_labels": 2}

    def encode(
        self, examples: Examples, processor: PreTrainedTokenizerBase, options: RowOptions
    ) -> EncodedRows:
        """A row for every stretch of the context that fits beside the question.

        Rows begin `stride` tokens apart; without one, a third of what fits overlaps.
        """
        if not processor.is_fast:
            raise UnsupportedError(
                f"{type(processor).__name__} does not say which letters a token stands for, which "
                "answers are read from: pass a folder with tokenizer.json as --tokenizer."
            )
        questions, contexts, answers = ([str(text) for text in part] for part in examples.texts)
        rows: dict[int, list[_Row]] = {}
        for overlap, members in _by_overlap(questions, contexts, processor, options).items():
            out = processor(
                [questions[number] for number in members],
                [contexts[number] for number in members],
                truncation="only_second",
                max_length=options.length,
                stride=overlap,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
            )
            for row, sample in enumerate(out["overflow_to_sample_mapping"]):
                golds, _ = read_answers(answers[members[sample]])
                rows.setdefault(members[sample], []).append(_row(out, row, processor, golds))
        several = [(number, row) for number in sorted(rows) for row in rows[number]]
        names = list(several[0][1][0])
        columns = {name: [columns[name] for _, (columns, _) in several] for name in names}
        encoded = padded_rows(columns, [labels for _, (_, labels) in several], processor)
        # labels are places in a row: padding goes behind it
        return replace(encoded, left=False, examples=np.array([number for number, _ in several]))

    def given(
        self, model: PreTrainedModel, rows: EncodedRows, answers: Tensor
    ) -> tuple[EncodedRows, tuple[str, ...]]:
        """Rows of tokens have no text to score against."""
        raise UsageError("Answers are scored against texts: pass a question-answering task.")

    def answers(self, outputs: Any) -> Tensor:
        """(row, token, 2) numbers for where the answer begins and where it ends."""
        return torch.stack([outputs.start_logits, outputs.end_logits], dim=-1)

    def distributions(self, answers: Tensor, batch: ModelBatch) -> Tensor:
        """(row, 2, token) over all tokens but padding: where it begins, and where it ends."""
        return _without_padding(answers, batch).transpose(1, 2)

    def require_labels(self, answers: Tensor, labels: Tensor) -> None:
        """First and last token, and those that only scores need."""
        fits = labels.ndim == 2 and len(labels) == len(answers) and labels.shape[1] in (2, 5)
        self.require_as_many(torch.Size([len(answers), 2]), labels, fits)
        for side in range(2):
            super().require_labels(answers[..., side].detach(), labels[:, side])

    def counts(self, labels: Tensor) -> Tensor:
        """(row, 2) first and last token."""
        return super().counts(labels[:, :2])

    def losses(
        self, answers: Tensor, batch: ModelBatch, *, smoothing: float = 0.0, total: bool = False
    ) -> Tensor:
        """(row, 2) cross-entropy of the first and of the last token, over all but padding."""
        assert batch.labels is not None
        numbers, labels = _without_padding(answers, batch), batch.labels[:, :2]
        logs = numbers.log_softmax(1)
        losses = -logs.gather(1, labels.clamp_min(0)[:, None])[:, 0] * (labels != IGNORED)
        if smoothing:
            known = numbers > NOTHING
            even = -(logs * known).sum(1) / known.sum(1)
            losses = (1 - smoothing) * losses + smoothing * even * (labels != IGNORED)
        return losses.sum() if total else losses

    def sample_labels(
        self, answers: Tensor, batch: ModelBatch, generator: torch.Generator
    ) -> Tensor:
        """(row, 2) a first and a last token, each drawn by itself, as the loss has them."""
        return draw_classes(self.distributions(answers, batch), generator)

    def read(self, answers: Tensor, batch: ModelBatch) -> Tensor:
        """(row, 5) the number of no answer, of the best one, its first and last token, -log p."""
        labels = batch.labels
        assert labels is not None
        numbers = _without_padding(answers, batch).double()
        nothing, first, last = labels[:, 2:].unbind(1)
        places = torch.arange(numbers.shape[1], device=numbers.device)
        inside = (places >= first[:, None]) & (places <= last[:, None])
        best = numbers.masked_fill(~inside[..., None], NOTHING).topk(min(BEST, len(places)), dim=1)
        starts, ends = best.indices[:, :, None, 0], best.indices[:, None, :, 1]
        sums = best.values[:, :, None, 0] + best.values[:, None, :, 1]
        fits = (ends >= starts) & (ends - starts < LONGEST)
        fits &= (best.values > NOTHING).all(-1)[:, :, None] & inside.gather(
            1, best.indices[..., 1]
        )[:, None]
        value, at = sums.masked_fill(~fits, NOTHING).flatten(1).max(1)
        pick = [
            side.expand_as(sums).flatten(1).gather(1, at[:, None])[:, 0] for side in (starts, ends)
        ]
        none = numbers.sum(-1).gather(1, nothing[:, None])[:, 0]
        table = torch.stack(
            [none, value, *pick, self.losses(answers, batch).double().sum(1)], dim=1
        )
        return table.masked_fill(~numbers.isfinite().all(2).all(1)[:, None], torch.nan)

    def score(self, kept: np.ndarray, scored: ScoredRows) -> tuple[Outcome, PredictionTable]:
        """The best answer of an example's rows as a text, beside all right ones."""
        columns = scored.rows.columns
        questions, contexts, answers = (list(map(str, part)) for part in scored.examples.texts)
        predictions, labels, scores, sums = [], [], [], []
        for number, rows in enumerate(scored.rows.rows_of(range(len(questions)))):
            golds, may_have_none = read_answers(answers[number])
            row = rows[kept[rows, 1].argmax()]
            _, best, start, end, _ = kept[row]
            text = ""
            if best > NOTHING and not (may_have_none and kept[rows, 0].min() > best):
                letters = columns[STARTS][row][int(start)], columns[ENDS][row][int(end)]
                text = contexts[number][slice(*letters)].strip()
            predictions.append(text)
            labels.append(" | ".join(dict.fromkeys(gold for gold, _ in golds)))
            scores.append(answer_scores(text, [gold for gold, _ in golds]))
            sums.append((kept[rows, 4].sum(), len(rows)))
        outcome = Outcome(np.array(scores).reshape(-1, 2), np.ones(len(scores)))
        values = np.column_stack([np.array(scores), np.array(sums)]).T
        return outcome, {
            "row": np.arange(len(scores)),
            "source": questions,
            "label": labels,
            "prediction": predictions,
            "f1": values[0],
            "exact": values[1],
            "nll": values[2],
            "rows": values[3].astype(int),
        }

    def kept_losses(self, table: PredictionTable, scored: ScoredRows) -> Losses:
        """-log p of first and last tokens, over all rows of an example."""
        return table["nll"], 2.0 * table["rows"]


def _without_padding(answers: Tensor, batch: ModelBatch) -> Tensor:
    """(row, token, 2) the numbers, in single precision or better, of all tokens but padding."""
    numbers = answers.to(torch.promote_types(answers.dtype, torch.float32))
    mask = batch.inputs.get("attention_mask")
    return numbers if mask is None else numbers.masked_fill(mask[..., None] == 0, NOTHING)


def _by_overlap(
    questions: Sequence[str],
    contexts: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    options: RowOptions,
) -> dict[int, list[int]]:
    """Tokens of the context that two rows share -> the examples for which they do."""
    lengths, sizes = (
        [len(ids) for ids in tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]]
        for texts in (list(questions), list(contexts))
    )
    special = tokenizer.num_special_tokens_to_add(pair=True)
    groups: dict[int, list[int]] = {}
    for number, (length, size) in enumerate(zip(lengths, sizes, strict=True)):
        free = options.length - special - length
        step = free - free // 3 if options.stride is None else options.stride
        if free < 1 or (size > free and step > free):
            raise UsageError(
                f"The question {questions[number]!r:.60} has {length} tokens, and a row has "
                f"{options.length}: {max(free, 0)} are left for the {size} of its context, and "
                f"rows begin {max(step, 1)} apart. Pass a longer --max-length, which the model's "
                "positions may limit, or a smaller --stride."
            )
        groups.setdefault(max(0, free - step), []).append(number)
    return groups


def _row(
    out: BatchEncoding, row: int, tokenizer: PreTrainedTokenizerBase, golds: Sequence[Answer]
) -> _Row:
    """A row's columns and labels."""
    ids = out["input_ids"][row]
    context = np.flatnonzero(np.array(out.sequence_ids(row)) == 1)
    spans = np.zeros((len(ids), 2), dtype=int)
    spans[context] = np.array(out["offset_mapping"][row]).reshape(-1, 2)[context]
    columns = {name: out[name][row] for name in INPUTS if name in out}
    columns |= {STARTS: spans[:, 0].tolist(), ENDS: spans[:, 1].tolist()}
    nothing = ids.index(tokenizer.cls_token_id) if tokenizer.cls_token_id in ids else 0
    first, last = (int(context[0]), int(context[-1])) if len(context) else (0, -1)
    labels = [nothing, nothing, nothing, first, last]
    if golds and len(context):
        starts, ends = spans[context].T
        text, begin = golds[0]
        end = begin + len(text)
        # the token with the first letter, and the one with the last
        pair = np.searchsorted(ends, begin, "right"), np.searchsorted(starts, end, "left") - 1
        if starts[0] <= begin and end <= ends[-1] and pair[0] <= pair[1]:
            labels[:2] = (first + int(offset) for offset in pair)
    return columns, labels
