"""What is looked at in a text."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.errors import UsageError
from headcount.heads import STACKS
from headcount.names import require


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A text that a model reads, and the heads that are shown of it."""

    pair: str | None = None
    """A second text, for models of tasks with two."""
    target: str | None = None
    """What an encoder–decoder's decoder reads; left out, what the model writes itself."""
    max_length: int = 128
    """Tokens of the text; what is longer is cut."""
    stack: str | None = None
    """Only encoder, cross or decoder heads."""
    layer: tuple[int, ...] = ()
    """Only these layers, counted from 0."""
    head: tuple[int, ...] = ()
    """Only heads with these numbers, counted from 0 in their layer."""

    def __post_init__(self) -> None:
        if self.stack is not None:
            require("stack", self.stack, STACKS)
        if self.max_length < 2:
            raise UsageError(f"max_length must be at least 2, not {self.max_length}.")
