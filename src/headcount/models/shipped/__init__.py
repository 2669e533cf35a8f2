"""The models that come with headcount, so that everything can be tried without a network.

`tools/pocket/build.py` makes their weights anew.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from headcount.base.errors import NotFoundError
from headcount.base.files import require_plain_files
from headcount.base.names import did_you_mean


class Shipped(NamedTuple):
    """A model that is inside the package."""

    name: str
    summary: str


MODELS: Final = (
    Shipped("pocket-bert", "a BERT of 6 layers x 8 heads for the pocket tasks; `pocket` for short"),
    Shipped("pocket-translator", "an encoder-decoder of 3 + 3 layers for pocket-translation"),
)
NAMES: Final = tuple(model.name for model in MODELS)
OFFLINE: Final = ("1", "true", "ON", "YES")


def is_shipped(name: str | os.PathLike[str]) -> bool:
    """Whether a name means a shipped model: a model folder of yours of the same name comes first.

    Any other folder does not, as `reproduce/` and `studies/` may hold one that is called pocket.
    """
    return _full(name) in NAMES and not (Path(name) / "config.json").is_file()


def locate(name: str | os.PathLike[str]) -> str:
    """The folder of a shipped model; any other name, or a model folder of yours, stays as it is."""
    if is_shipped(name):
        return str(Path(__file__).parent / _full(name))
    require_plain_files(Path(name))
    return str(name)


def _full(name: str | os.PathLike[str]) -> str:
    return "pocket-bert" if str(name) == "pocket" else str(name)


def no_model(name: str) -> NotFoundError:
    """The refusal of a name that leads nowhere."""
    off = os.environ.get("HF_HUB_OFFLINE") in OFFLINE
    where = "a folder here, and the hub is switched off" if off else "a folder or on the hub"
    hint = did_you_mean(name, NAMES) or " Pass the path of a model folder."
    return NotFoundError(f"There is no model '{name}': it is not {where}.{hint}")


def require_model(name: str | os.PathLike[str]) -> None:
    """Refuse what can be no model, without loading anything: a name may still be on the hub."""
    path = Path(locate(name))
    if path.is_dir() and not (path / "config.json").is_file():
        raise NotFoundError(f"'{name}' is not a model folder: it has no config.json.")
    if path.exists():
        return
    text = str(name)
    # names on the hub are `name` or `owner/name`
    if text.startswith((".", "/", "~")) or text.endswith("/") or text.count("/") > 1:
        raise no_model(text)
    if os.environ.get("HF_HUB_OFFLINE") in OFFLINE:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError

        try:
            cached = try_to_load_from_cache(text, "config.json")
        except HFValidationError:
            cached = None
        if not isinstance(cached, str):
            raise no_model(text)
