"""Which tokens of a batch are text, which are special, and which separate."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UnsupportedError
from headcount.behaviour.patterns import Side
from headcount.likeness.attention import padding_masks
from headcount.likeness.inputs import Batch
from headcount.models.patches import patch_grid
from headcount.models.processors import is_tokenizer

NAMED = ("bos", "eos", "sep", "cls", "pad", "decoder_start")
"""Tokens that a config names."""
SPACES = ("##", "Ġ", "▁", "Ċ")
"""How vocabularies write what comes before a token."""
READS = {"encoder": ("encoder", "encoder"), "decoder": ("decoder", "decoder")}
READS["cross"] = ("decoder", "encoder")
"""Stack -> whose tokens are its queries, and whose its keys."""


@dataclass(frozen=True)
class Marks:
    """Which tokens are special, which are punctuation, and which of the two separate a text."""

    special: frozenset[int]
    punctuation: frozenset[int]
    separators: Mapping[str, str | None] = field(default_factory=dict)
    """encoder or decoder -> special, punctuation, or None where it has neither."""

    def sides(self, model: nn.Module, batch: Batch) -> dict[str, Side]:
        """encoder and decoder -> their tokens; a model with one of them has it under both names."""
        if "input_ids" not in batch and "pixel_values" in batch:
            patches = _patches(model, batch)
            return {"encoder": patches, "decoder": patches}
        masks = padding_masks(model, batch)
        sides: dict[str, Side] = {}
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
            sides[name] = Side(ids, real, real & ~special, separators)
        return sides

    def with_separators(self, model: nn.Module, batches: Iterable[Batch]) -> Marks:
        """With what separates: special tokens where a row has one after its first token.

        A decoder does not see what comes last, so there it must have text after it.
        """
        seen: dict[str, bool] = {}
        for batch in batches:
            for name, side in self.sides(model, batch).items():
                inside = side.real & ~side.text & (side.positions > 0)
                if name == "decoder":
                    inside &= side.text.flip(1).cumsum(1).flip(1) > 0
                seen[name] = seen.get(name, False) or bool(inside.any())
        other = "punctuation" if self.punctuation else None
        chosen = {name: "special" if inside else other for name, inside in seen.items()}
        return Marks(self.special, self.punctuation, chosen)


def marks_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> Marks:
    """What the tokenizer says, or the config where there is none; unknown and hidden words are
    text."""
    if not is_tokenizer(tokenizer):
        named = [getattr(model.config, f"{name}_token_id", None) for name in NAMED]
        lists = [ids if isinstance(ids, list | tuple) else [ids] for ids in named]
        numbers = {number for ids in lists for number in ids if isinstance(number, int)}
        return Marks(frozenset(numbers), frozenset())
    text = (tokenizer.unk_token_id, tokenizer.mask_token_id)
    special = frozenset(number for number in tokenizer.all_special_ids if number not in text)
    points = (number for word, number in tokenizer.get_vocab().items() if _is_punctuation(word))
    return Marks(special, frozenset(points) - special)


def _patches(model: nn.Module, batch: Batch) -> Side:
    """The patches of images, row by row, behind the class token and others that are no patches."""
    grid, device = patch_grid(model, batch), next(model.parameters()).device
    count = grid.start + grid.rows * grid.columns
    ids = torch.arange(count, device=device).expand(len(batch["pixel_values"]), -1)
    text = ids >= grid.start
    return Side(ids, torch.ones_like(text), text, ~text & (ids > 0), grid.columns, grid.start)


def _is_punctuation(word: str) -> bool:
    for space in SPACES:
        word = word.removeprefix(space)
    return bool(word) and all(unicodedata.category(letter)[0] == "P" for letter in word)


def _ids(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    device = next(model.parameters()).device
    ids = batch.get("input_ids")
    if ids is None or ids.ndim != 2:
        raise UnsupportedError(
            f"Roles are about tokens, and the inputs of {type(model).__name__} have none "
            "(input_ids, input x token)."
        )
    ids = ids.to(device)
    if not getattr(model.config, "is_encoder_decoder", False):
        return {"encoder": ids, "decoder": ids}
    target = batch.get("decoder_input_ids")
    if target is None:
        target = model.prepare_decoder_input_ids_from_labels(labels=batch["labels"].to(device))  # pyright: ignore[reportCallIssue]
    return {"encoder": ids, "decoder": target.to(device)}


def _among(ids: Tensor, known: frozenset[int]) -> Tensor:
    return torch.isin(ids, torch.tensor(sorted(known), dtype=ids.dtype, device=ids.device))
