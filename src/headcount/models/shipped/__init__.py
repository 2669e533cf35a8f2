"""The models that come with headcount, so that everything can be tried without a network.

`headcount.tasks.pocket.build` makes their weights anew.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

SHIPPED: Final = {
    "pocket-bert": "an encoder of 6 layers x 8 heads, pre-trained on the pocket world's sentences",
    "pocket-translator": "an encoder-decoder, trained to translate the pocket world's sentences",
}
SHORT: Final = {"pocket": "pocket-bert"}


def locate(name: str | os.PathLike[str]) -> str:
    """The folder of a shipped model; any other name, or a folder of yours, stays as it is."""
    full = SHORT.get(str(name), str(name))
    if full in SHIPPED and not Path(name).exists():
        return str(Path(__file__).parent / full)
    return str(name)
