"""A command in several processes, as `accelerate launch` or `torchrun` start them."""

from __future__ import annotations

import os

import torch

from headcount.base.errors import UsageError


def is_first() -> bool:
    """Whether this is the process that prints and writes for all, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def first_says(value: bool) -> bool:
    """What the first process found, in all of them: their clocks differ."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        from accelerate.utils import broadcast_object_list

        return broadcast_object_list([value])[0]
    return value


def wait_for_all() -> None:
    """Go on once every process is here; those that never trained together do not wait."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()


def require_one(command: str) -> None:
    """Refuse several processes where they would write into each other's files."""
    count = os.environ.get("WORLD_SIZE", "1")
    if count != "1":
        raise UsageError(
            f"The command {command} keeps its runs in one folder, so it takes one process, not "
            f"{count}: start it without accelerate launch."
        )
