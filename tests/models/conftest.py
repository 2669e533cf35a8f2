"""Shared by tests of saving and loading."""

from __future__ import annotations

import pytest

from headcount.models.find import layout
from headcount.models.remove import remove
from models.zoo import build, masks


@pytest.fixture
def pruned(tmp_path):
    """A saved model with heads removed, and its folder."""
    model = build("bert")
    small = remove(model, masks(layout(model))["uneven"])
    small.save_pretrained(tmp_path / "small")
    return small, tmp_path / "small"
