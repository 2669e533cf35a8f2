"""The pocket world: small made-up tasks and models that need no network."""

from pathlib import Path

from headcount.errors import UsageError, did_you_mean
from headcount.tasks.pocket.world import POCKET_TASKS, SPLITS, PocketTask, examples, split_of

POCKET_MODELS = ("bert", "translator")


def pocket_path(name: str) -> Path:
    """The folder of a shipped model: `bert` (masked LM) or `translator` (encoder-decoder)."""
    if name not in POCKET_MODELS:
        hint = did_you_mean(name, POCKET_MODELS)
        known = ", ".join(POCKET_MODELS)
        raise UsageError(f"There is no pocket model '{name}'.{hint} Known: {known}.")
    return Path(__file__).parent / "weights" / name


__all__ = [
    "POCKET_MODELS",
    "POCKET_TASKS",
    "SPLITS",
    "PocketTask",
    "examples",
    "pocket_path",
    "split_of",
]
