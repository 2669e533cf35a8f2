"""A task: what is measured on. Its rows, what they are called, and how predictions are scored.

    task = open_task("sst2", data="glue")
    rows = task.load("dev", limit=500)      # Examples: texts and labels

The task's own score comes first in `task.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.base.text import line

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from headcount.tasks.parts import Parts
    from headcount.tasks.source import Source

Limit = int | float | None
"""How many rows: a count, a fraction (a float between 0 and 1), or None for all."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows of a task: one or two texts each, and labels where the task has any."""

    texts: tuple[Sequence[str | None], ...]
    """One column, or two: a pair (None where a row has no second text), or a translation."""
    labels: np.ndarray | None = None
    """(row,) class numbers, or scores in a regression; None in language modelling."""
    files: Sequence[Path] | None = None
    """(row,) the image or sound that a row is; its first text then names the file's content."""
    corpus: Sequence[str] = ()
    """Texts that every row is compared with, as in retrieval; a part of the rows has all."""
    groups: Sequence[str] | None = None
    """(row,) rows with the same one stay together where a file is split, as those of a context."""

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.texts}
        if self.labels is not None:
            lengths.add(len(self.labels))
        if len(lengths) != 1:
            raise UsageError(f"Columns of different lengths: {sorted(lengths)}.")

    def __len__(self) -> int:
        return len(self.texts[0])

    def __repr__(self) -> str:
        labels = "" if self.labels is None else ", labels"
        return f"Examples({len(self)} rows of {len(self.texts)} texts{labels})"

    def take(self, rows: np.ndarray) -> Examples:
        """The rows of these numbers, in this order."""
        texts = tuple([column[i] for i in rows] for column in self.texts)
        files = None if self.files is None else [self.files[i] for i in rows]
        labels = None if self.labels is None else self.labels[rows]
        groups = None if self.groups is None else [self.groups[int(i)] for i in rows]
        return Examples(texts, labels, files, self.corpus, groups)


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything about a task that does not depend on a model."""

    name: str
    kind: str
    """A name of `tasks.kinds.TASK_KINDS`."""
    texts: tuple[str, ...]
    """What the text columns are called, one or two."""
    labels: tuple[str, ...] = ()
    """Names of the classes, in the order of their numbers; empty without classes."""
    numbered: bool = True
    """Classes: their numbers mean something (GLUE's do), and are not just the names sorted."""
    called: tuple[tuple[str, str], ...] = ()
    """Classes: what the model calls them, by name or number, where the user has said so."""
    metrics: tuple[str, ...]
    """How predictions are scored; the first is the task's score."""
    loader: Callable[[str], Examples] = field(repr=False, compare=False)
    """Reads the rows of a split."""
    splits: tuple[str, ...] = ("train", "dev")
    evaluation: str = "dev"
    """The split that is evaluated on when none is named."""
    parts: Parts | None = field(default=None, repr=False, compare=False)
    """Which rows are in which split, where a single file was split."""
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """What a record of these rows must say."""
    window: int | None = None
    """Language modelling: tokens of a window; the text is cut into windows instead of blocks."""
    stride: int | None = None
    """Tokens from one window, or row of one context, to the next; the window when left out."""
    choices: bool = False
    """Its rows are prompts with choices."""
    chat: bool = False
    """Its texts are conversations, as JSON, for the tokenizer's chat template."""
    normalizer: str = ""
    """Speech: a name of `transcripts.NORMALIZERS`, how texts are compared."""
    packed: bool = False
    """Language modelling: texts are joined and cut into blocks instead of one row per line."""
    source: Source | None = field(default=None, repr=False, compare=False)
    """What it was opened on: another process opens the same. None: a task that is no file's."""

    def __repr__(self) -> str:
        splits = f"splits {', '.join(self.splits)}"
        return line(f"Task({self.name}: {self.kind}, {', '.join(self.metrics)}; {splits})")

    @property
    def metric(self) -> str:
        """The name of the task's score."""
        return self.metrics[0]

    def load(self, split: str | None = None, *, limit: Limit = None, seed: int = 0) -> Examples:
        """The rows of a split, or a seeded sample of them in their own order.

        `dev:held-out:0.5:0` is half of dev, drawn with seed 0 (`tasks/parts.py`).
        """
        split = split or self.evaluation
        examples = self._half(split) if ":" in split else self._whole(split)
        return examples if limit is None else examples.take(sample(len(examples), limit, seed))

    def _whole(self, split: str) -> Examples:
        if split not in self.splits:
            says = f"Task '{self.name}' has no split '{split}'"
            raise unknown(says, split, self.splits, has="It has")
        return self.loader(split)

    def _half(self, name: str) -> Examples:
        from headcount.tasks.parts import half_of, read_half  # takes numpy

        half = None if name in self.splits else read_half(name)
        if half is None:
            return self._whole(name)
        return half_of(self._whole(half[0]), name, packed=self.packed)


def sample(size: int, limit: int | float, seed: int) -> np.ndarray:
    """Row numbers of a seeded sample, ascending; a smaller one is a part of a larger one.

    >>> sample(10, 3, seed=0).tolist(), len(sample(10, 0.5, seed=0))
    ([2, 4, 6], 5)
    """
    import numpy as np  # here, so that listing tasks stays quick

    if isinstance(limit, float):
        if not 0 < limit <= 1:
            raise UsageError(f"A fraction of the rows is above 0 and at most 1, not {limit}.")
        count = max(1, round(size * limit))
    else:
        if limit < 1:
            raise UsageError(f"A number of rows is at least 1, not {limit}.")
        count = min(limit, size)
    return np.sort(np.random.default_rng(seed).permutation(size)[:count])
