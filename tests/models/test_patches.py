from __future__ import annotations

import pytest

from headcount.base.errors import UnsupportedError
from headcount.models.patches import PatchGrid, patch_grid
from headcount.models.probe import probe_inputs
from models.zoo import build


def test_a_grid_behind_a_class_token() -> None:
    model = build("vit")
    batch = probe_inputs(model, batch=2)
    size, patch = model.config.image_size, model.config.patch_size
    side = size // patch
    assert patch_grid(model, batch) == PatchGrid(side, side, 1)


def test_windows_are_no_grid() -> None:
    """Swin's tokens are those of a window, not of the image."""
    model = build("swin")
    with pytest.raises(UnsupportedError, match="has no place in the image"):
        patch_grid(model, probe_inputs(model))


def test_a_model_that_names_no_patches() -> None:
    model = build("vit")
    batch = probe_inputs(model)
    model.config.patch_size = [2, 4, 4]  # a video's
    with pytest.raises(UnsupportedError, match="does not say how it cuts images"):
        patch_grid(model, batch)
