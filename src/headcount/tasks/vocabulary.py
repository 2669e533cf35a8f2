"""A tokenizer made from a task's own texts, for models that are trained from scratch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headcount.base.errors import UsageError
from headcount.tasks.task import Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SPECIAL = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}


def train_tokenizer(
    texts: Iterable[str], size: int, *, max_length: int = 512
) -> PreTrainedTokenizerFast:
    """Byte-pair encoding with `size` tokens: any text can be encoded, and decoded again unchanged.

    Every text ends in `</s>`; `<pad>` is token 0. The same texts give the same tokenizer.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    least = len(alphabet) + len(SPECIAL)
    if size < least:
        raise UsageError(f"A tokenizer needs at least {least} tokens, not {size}.")
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    built.train_from_iterator(texts, trainer)
    end = SPECIAL["eos_token"]
    built.post_processor = processors.TemplateProcessing(
        single=f"$A {end}",
        pair=f"$A {end} $B {end}",
        special_tokens=[(end, built.token_to_id(end))],
    )
    return PreTrainedTokenizerFast(tokenizer_object=built, model_max_length=max_length, **SPECIAL)


def tokenizer_for(task: Task, size: int) -> PreTrainedTokenizerFast:
    """A tokenizer trained on all texts of the task's train split."""
    columns = task.load("train").texts
    return train_tokenizer((text for column in columns for text in column if text), size)
