"""The models that come with headcount, so that everything can be tried without a network.

`headcount.tasks.pocket.build` makes their weights anew.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple


class Shipped(NamedTuple):
    """A model that is inside the package."""

    name: str
    summary: str


MODELS: Final = (
    Shipped("pocket-bert", "a BERT of 6 layers x 8 heads for the pocket tasks; `pocket` for short"),
    Shipped("pocket-translator", "an encoder-decoder of 3 + 3 layers for pocket-translation"),
)
NAMES: Final = tuple(model.name for model in MODELS)


def locate(name: str | os.PathLike[str]) -> str:
    """The folder of a shipped model; any other name, or a folder of yours, stays as it is."""
    full = "pocket-bert" if str(name) == "pocket" else str(name)
    if full in NAMES and not Path(name).exists():
        return str(Path(__file__).parent / full)
    return str(name)
