"""What is looked at in a text, and between two checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headcount.base.errors import UsageError
from headcount.base.names import require
from headcount.base.options import checked
from headcount.heads import STACKS
from headcount.sensitivity.options import require_norm


@dataclass(frozen=True, kw_only=True)
@checked
class Sentence:
    """A text or an image that a model reads, and the heads that are shown of it."""

    image: Path | None = None
    """An image instead of a text, for models of images."""
    pair: str | None = None
    """A second text, for models of tasks with two."""
    target: str | None = None
    """What the decoder of an encoder–decoder reads; by default what the model generates."""
    max_length: int = 128
    """Tokens of the text; a longer one is truncated."""
    stack: str | None = None
    """Only encoder, cross or decoder heads."""
    layer: tuple[int, ...] = ()
    """Only these layers, counted from 0."""
    head: tuple[int, ...] = ()
    """Only heads with these numbers, counted from 0 in their layer."""

    def __post_init__(self) -> None:
        if self.stack is not None:
            require("stack", self.stack, STACKS)
        if self.image is not None and (self.pair or self.target):
            raise UsageError("An image has no pair, and no decoder reads a target beside it.")
        if self.max_length < 2:
            raise UsageError(f"max_length must be at least 2, not {self.max_length}.")


def require_one(text: str | None, image: object) -> None:
    """Refuse nothing to look at, and both."""
    if (text is None) == (image is None):
        raise UsageError("Attention is looked at on one text or one image: pass one of the two.")


@dataclass(frozen=True, kw_only=True)
@checked
class DriftOptions:
    """What is asked of two checkpoints beside their drift."""

    pretraining_task: str | None = None
    """The first model's task, such as masked-lm or pocket-corpus."""
    pretraining_data: Path | None = None
    """Folder or file with its rows."""
    recall: bool = False
    """Score both models with fewer and fewer heads, least important first."""
    share: float = 0.9
    """The heads a task needs are those for this share of its score."""
    points: int = 24
    """Numbers of heads to score, at most."""
    limit: int | None = None
    """Score a seeded sample of this many rows."""
    normalize: str | None = None
    """Divide importance by its layer's norm: none, l1, l2; l1 where there is one stack."""
    importance_samples: int = 512
    """Rows of the train split that importance is estimated on."""

    def __post_init__(self) -> None:
        if self.recall and self.pretraining_task is None:
            raise UsageError("--recall compares two tasks: pass --task and --pretraining-task.")
        if self.pretraining_data is not None and self.pretraining_task is None:
            raise UsageError("--pretraining-data goes with --pretraining-task.")
        if not 0 < self.share <= 1:
            raise UsageError(f"The share of the score is above 0 and at most 1, not {self.share}.")
        if self.points < 1:
            raise UsageError(f"At least one number of heads is scored, not {self.points}.")
        for count in (self.limit, self.importance_samples):
            if count is not None and count < 1:
                raise UsageError(f"A number of rows is at least 1, not {count}.")
        if self.normalize is not None:
            require_norm(self.normalize)
