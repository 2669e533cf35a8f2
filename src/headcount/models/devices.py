"""Where to run."""

from __future__ import annotations

import torch

from headcount.base.errors import UsageError


def pick_device(name: str) -> str:
    """`auto` is the first GPU there is, else the CPU; a device that is not there is refused."""
    if name == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        kind = torch.device(name).type
    except RuntimeError:
        raise UsageError(
            f"There is no device '{name}'. Known: auto, cpu, cuda, cuda:1, mps."
        ) from None
    available = {"cpu": True, "cuda": torch.cuda.is_available()}
    if not available.get(kind, kind == "mps" and torch.backends.mps.is_available()):
        raise UsageError(f"There is no device '{name}' on this machine; use --device cpu.")
    return name
