"""Let an encoder–decoder write its answers to rows, with its heads as they are or with masks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UnsupportedError, UsageError
from headcount.heads import Mask
from headcount.models.find import unwrap
from headcount.models.hooks import evaluating
from headcount.tasks.audio import sound_settings
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.loading import room
from headcount.training.forward import GateBoard


def translate(
    model: PreTrainedModel,
    rows: EncodedRows,
    tokenizer: PreTrainedTokenizerBase,
    masks: Sequence[Mask] | None = None,
    *,
    beams: int = 1,
    tokens: int = 4096,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
) -> list[list[str]]:
    """What the model writes to every row, for every mask; masks share a batch when rows are few.

    Generation works word by word, so what a step costs hardly depends on how many rows it has:
    filling the batch with masks saves more than sharing layers would.
    """
    bare: Any = unwrap(model)
    if not getattr(bare.config, "is_encoder_decoder", False):
        raise UnsupportedError(
            f"{type(bare).__name__} is no encoder-decoder: it cannot write a text from another."
        )
    shown: Sequence[Mask | None] = [None] if masks is None else masks
    texts: list[list[str]] = [[""] * len(rows) for _ in shown]
    device = next(bare.parameters()).device
    sound = "input_ids" not in rows.columns
    settings = sound_settings(bare, beams) if sound else generation_settings(bare, rows, beams)
    with torch.inference_mode(), evaluating(bare), ExitStack() as stack:
        board = None if masks is None else GateBoard(bare, masks)
        if board is not None:
            stack.enter_context(board.attached())
        for numbers, batch in rows.batches(tokens):
            read = {name: batch[name] for name in inputs if name in batch}
            together = max(1, tokens // next(iter(read.values())).numel())
            for at in range(0, len(shown), together):
                part = shown[at : at + together]
                if board is not None:
                    board.show(range(at, at + len(part)))
                written = bare.generate(
                    **{
                        name: _repeated(value, len(part)).to(device) for name, value in read.items()
                    },
                    generation_config=settings,
                    logits_processor=[_Finite()],
                )
                decoded = tokenizer.batch_decode(written, skip_special_tokens=True)
                for copy in range(len(part)):
                    for number, text in zip(numbers, decoded[copy * len(numbers) :], strict=False):
                        texts[at + copy][number] = text.strip()
    return texts


def _repeated(rows: Tensor, times: int) -> Tensor:
    return rows.repeat(times, *[1] * (rows.ndim - 1))


class _Finite(LogitsProcessor):
    """Changes nothing; a word chosen among NaN would be no word of the model's."""

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        if torch.isnan(scores).any() or torch.isposinf(scores).any():
            raise UsageError(
                "The model cannot be scored: its predictions are NaN or infinite, although its "
                "weights are finite: its activations overflow. Load it in float32."
            )
        return scores


def generation_settings(model: Any, rows: EncodedRows, beams: int) -> GenerationConfig:
    """The model's own special tokens, no sampling, and room for twice the longest source.

    A target that is longer, or a model with fewer positions, decides instead.
    """
    config = model.generation_config
    targets = rows.labels if isinstance(rows.labels, list) else []
    longest = max(int(2 * rows.lengths.max() + 10), *map(len, targets), 0)
    return GenerationConfig(
        num_beams=beams,
        do_sample=False,
        max_new_tokens=room(model, longest + 1) - 1,
        pad_token_id=config.pad_token_id,
        eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
        bad_words_ids=config.bad_words_ids,
        forced_bos_token_id=config.forced_bos_token_id,
        forced_eos_token_id=config.forced_eos_token_id,
    )
