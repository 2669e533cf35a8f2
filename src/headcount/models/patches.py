"""How a model cuts images: the grid of patches, and the tokens in front of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from headcount.base.errors import UnsupportedError
from headcount.models.batches import model_inputs
from headcount.models.find import sites_of
from headcount.models.memory import remembered
from headcount.models.watch import watching

FURTHER = 16
"""Tokens of an image that are no patches, at most: a class token, and registers."""


class PatchGrid(NamedTuple):
    """Patches row by row, behind `start` tokens that are none, such as a class token."""

    rows: int
    columns: int
    start: int


def patch_grid(model: nn.Module, batch: dict[str, Tensor]) -> PatchGrid:
    """The grid of the images in a batch; a model that attends over other tokens is refused."""
    pixels = batch["pixel_values"]
    size: Any = getattr(model.config, "patch_size", None)
    grid = size if isinstance(size, list | tuple) else (size, size)
    if pixels.ndim != 4 or len(grid) != 2 or not all(isinstance(side, int) for side in grid):
        raise UnsupportedError(f"{type(model).__name__} does not say how it cuts images.")
    rows, columns = pixels.shape[2] // grid[0], pixels.shape[3] // grid[1]
    shape = tuple(pixels.shape[1:])
    count = remembered(model, ("tokens of an image", shape), lambda: _tokens(model, batch))
    start = count - rows * columns
    if not 0 <= start <= FURTHER:
        raise UnsupportedError(
            f"{type(model).__name__} attends over {count} tokens, and an image has {rows} x "
            f"{columns} patches: what its heads attend to has no place in the image."
        )
    return PatchGrid(rows, columns, start)


def _tokens(model: nn.Module, batch: dict[str, Tensor]) -> int:
    """How many tokens the first layer attends over."""
    counts: list[int] = []
    outs = [(site, out) for site in sites_of(model)[:1] for _, out in site.places]
    one = model_inputs(model, {name: value[:1] for name, value in batch.items()})

    def count(_: object, args: tuple[Tensor, ...], __: object) -> None:
        counts.append(args[0].shape[1])

    with torch.no_grad(), watching(model, outs, count):
        model(**one)
    return counts[0]
