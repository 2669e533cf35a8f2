"""Masks as they are typed: heads to keep per layer, JSON, or a JSON file such as mask.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headcount.files import read_text

if TYPE_CHECKING:
    from headcount.heads import Mask


def mask_of(typed: str, model: Any) -> Mask:
    """The mask of a model, or of a layout."""
    from headcount.heads import Layout
    from headcount.models.find import layout
    from headcount.models.numbers import read_mask

    heads = model if isinstance(model, Layout) else layout(model)
    return read_mask(mask_text(typed), model, heads)


def mask_text(typed: str) -> str:
    """The mask's text: what was typed, or what is in the file that was named."""
    return read_text(typed, "mask") if typed.endswith(".json") else typed
