"""Which tokens of a batch are text, which are special, and which separate."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.errors import UnsupportedError
from headcount.behaviour.patterns import Side
from headcount.likeness.attention import padding_masks
from headcount.likeness.inputs import Batch

NAMED = ("bos", "eos", "sep", "cls", "pad", "decoder_start")
"""Tokens that a config names."""
SPACES = ("##", "Ġ", "▁", "Ċ")
"""How vocabularies write what comes before a token."""
READS = {"encoder": ("encoder", "encoder"), "decoder": ("decoder", "decoder")}
READS["cross"] = ("decoder", "encoder")
"""Stack -> whose tokens look, and at whose."""


@dataclass(frozen=True)
class Marks:
    """Which tokens are special, which are punctuation, and which of the two separate a text."""

    special: frozenset[int]
    punctuation: frozenset[int]
    separators: Mapping[str, str | None] = field(default_factory=dict)
    """encoder or decoder -> special, punctuation, or None where it has neither."""

    def sides(self, model: nn.Module, batch: Batch) -> dict[str, Side]:
        """encoder and decoder -> their tokens; a model with one of them has it under both names."""
        masks = padding_masks(model, batch)
        found: dict[str, Side] = {}
        for name, ids in _ids(model, batch).items():
            mask = masks[name][0]
            real = torch.ones_like(ids).bool() if mask is None else mask.to(ids.device) != 0
            if real.shape != ids.shape:
                raise UnsupportedError(
                    f"The {name} reads {tuple(ids.shape)} tokens and its mask is "
                    f"{tuple(real.shape)}: padding cannot be told from text."
                )
            special = real & _among(ids, self.special)
            which = self.separators.get(name)
            separators = special
            if which != "special":
                kept = self.punctuation if which == "punctuation" else frozenset()
                separators = real & _among(ids, kept)
            found[name] = Side(ids, real, real & ~special, separators)
        return found

    def told(self, model: nn.Module, batches: Iterable[Batch]) -> Marks:
        """With what separates: special tokens where a row has one behind its first token.

        A decoder does not see what comes last, so there it must have text behind it.
        """
        seen: dict[str, bool] = {}
        for batch in batches:
            for name, side in self.sides(model, batch).items():
                inside = side.real & ~side.text & (side.places > 0)
                if name == "decoder":
                    inside &= side.text.flip(1).cumsum(1).flip(1) > 0
                seen[name] = seen.get(name, False) or bool(inside.any())
        other = "punctuation" if self.punctuation else None
        chosen = {name: "special" if there else other for name, there in seen.items()}
        return Marks(self.special, self.punctuation, chosen)


def marks_of(model: nn.Module, tokenizer: Any) -> Marks:
    """What the tokenizer says, or the config where there is none; unknown and hidden words are
    text."""
    if tokenizer is None:
        config: Any = model.config
        named = [getattr(config, f"{name}_token_id", None) for name in NAMED]
        lists = [each if isinstance(each, list | tuple) else [each] for each in named]
        numbers = {each for one in lists for each in one if isinstance(each, int)}
        return Marks(frozenset(numbers), frozenset())
    text = {tokenizer.unk_token_id, tokenizer.mask_token_id}
    special = frozenset(tokenizer.all_special_ids) - text
    points = (number for word, number in tokenizer.get_vocab().items() if _is_punctuation(word))
    return Marks(special, frozenset(points) - special)


def _is_punctuation(word: str) -> bool:
    for space in SPACES:
        word = word.removeprefix(space)
    return bool(word) and all(unicodedata.category(letter)[0] == "P" for letter in word)


def _ids(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    device = next(model.parameters()).device
    own = batch.get("input_ids")
    if own is None or own.ndim != 2:
        raise UnsupportedError(
            f"Roles are about tokens, and the inputs of {type(model).__name__} have none "
            "(input_ids, input x token)."
        )
    own = own.to(device)
    config: Any = model.config
    if not getattr(config, "is_encoder_decoder", False):
        return {"encoder": own, "decoder": own}
    told = batch.get("decoder_input_ids")
    if told is None:
        told = model.prepare_decoder_input_ids_from_labels(labels=batch["labels"].to(device))  # pyright: ignore[reportCallIssue]
    return {"encoder": own, "decoder": told.to(device)}


def _among(ids: Tensor, known: frozenset[int]) -> Tensor:
    return torch.isin(ids, torch.tensor(sorted(known), dtype=ids.dtype, device=ids.device))
