"""Masks as they are typed: heads to keep per layer, JSON, or a JSON file such as mask.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headcount.heads import Mask


def mask_of(typed: str, model: Any) -> Mask:
    """The mask of a model, or of a layout."""
    from headcount.heads import Layout
    from headcount.models.find import layout
    from headcount.models.numbers import read_mask

    return read_mask(typed, model, model if isinstance(model, Layout) else layout(model))
