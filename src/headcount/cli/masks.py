"""Masks as they are typed: heads to keep per layer, JSON, or a JSON file such as mask.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headcount.files import read_text

if TYPE_CHECKING:
    from headcount.heads import Layout, Mask


def mask_of(typed: str, layout: Layout) -> Mask:
    """The mask of a model with this layout."""
    from headcount.heads import Mask

    return Mask.parse(mask_text(typed), layout)


def mask_text(typed: str) -> str:
    """The mask's text: what was typed, or what is in the file that was named."""
    return read_text(typed, "mask") if typed.endswith(".json") else typed
