"""Masking tokens for the masked-LM task, and random token sequences."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.base.errors import UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    from headcount.tasks.encoding import EncodedRows

IGNORED = -100
SHARE = 0.15
"""Share of a row's tokens to predict, as in BERT's pre-training."""


def mask_tokens(
    ids: list[int], tokenizer: PreTrainedTokenizerBase, generator: np.random.Generator
) -> tuple[list[int], list[int]]:
    """(tokens with some hidden, labels): 15 % have labels, at least one; of those 80 % become the
    mask token, 10 % a random one, 10 % stay. Special tokens never have a label.
    """
    mask: Any = tokenizer.mask_token_id
    if mask is None:
        raise UsageError("This tokenizer has no mask token, so the model is no masked LM.")
    special = frozenset(tokenizer.all_special_ids)
    text = np.array([i for i, token in enumerate(ids) if token not in special], dtype=np.int64)
    labels = [IGNORED] * len(ids)
    if not len(text):
        return list(ids), labels
    count = max(1, round(SHARE * len(text)))
    hidden = list(ids)
    words = ordinary_tokens(tokenizer)
    for at in generator.permutation(text)[:count]:
        labels[at] = ids[at]
        draw = generator.random()
        if draw < 0.8:
            hidden[at] = mask
        elif draw < 0.9:
            hidden[at] = int(words[generator.integers(len(words))])
    return hidden, labels


@lru_cache(maxsize=8)
def ordinary_tokens(tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    """Every token number that stands for text: neither special nor added."""
    added: Any = tokenizer.get_added_vocab
    special = {*tokenizer.all_special_ids, *added().values()}
    return np.array(sorted(set(tokenizer.get_vocab().values()) - special), dtype=np.int64)


def random_tokens(
    tokenizer: PreTrainedTokenizerBase,
    count: int,
    min_length: int,
    max_length: int,
    generator: torch.Generator,
) -> EncodedRows:
    """`count` rows of random text tokens with special tokens where the tokenizer puts them.

    As in On Attention Redundancy (NAACL 2021), §7.

    Lengths, special tokens included, are drawn uniformly from min_length to max_length.
    """
    import torch

    from headcount.tasks.encoding import EncodedRows, pad_token

    before, after = _frame(tokenizer)
    around = len(before) + len(after)
    if count < 1:
        raise UsageError(f"At least one random row is needed, not {count}.")
    if not around < min_length <= max_length:
        raise UsageError(
            f"Random rows of {min_length} to {max_length} tokens cannot be made: this tokenizer "
            f"adds {around} special tokens to each."
        )
    words = torch.from_numpy(ordinary_tokens(tokenizer))
    lengths = torch.randint(min_length, max_length + 1, (count,), generator=generator)
    rows = []
    for length in lengths.tolist():
        drawn = torch.randint(len(words), (length - around,), generator=generator)
        rows.append([*before, *words[drawn].tolist(), *after])
    padding = {"input_ids": pad_token(tokenizer)}
    return EncodedRows({"input_ids": rows}, None, padding, tokenizer.padding_side == "left")


def _frame(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The special tokens the tokenizer puts before and behind a text, seen on a one-word text."""
    text = tokenizer.decode([int(ordinary_tokens(tokenizer)[-1])])
    bare = tokenizer(text, add_special_tokens=False)["input_ids"]
    full = tokenizer(text)["input_ids"]
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return full[:start], full[start + len(bare) :]
    raise UsageError("This tokenizer's special tokens cannot be separated from its text tokens.")
