"""The order of the training rows, and masking that changes with every epoch.

Both follow from (seed, epoch) alone. A run that was killed and resumed, or cut over several
processes, sees exactly the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from headcount.models.processors import Processor
from headcount.tasks.encoding import IGNORED, EncodedRows, RowItem
from headcount.tasks.kinds.kind import TaskKind


class TrainingRows(Dataset[list[RowItem]]):
    """Examples to train on, and a blank one behind them (see `EpochOrder`)."""

    def __init__(
        self, rows: EncodedRows, kind: TaskKind | None, processor: Processor, *, seed: int = 0
    ) -> None:
        """The `kind` draws rows anew in every epoch; without one they stay as they are."""
        self.rows, self.kind, self.processor = rows, kind, processor
        self.seed = seed
        self.epoch = 0
        self.numbers = rows.rows_of(range(rows.count))

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def lengths(self) -> np.ndarray:
        """(example,) how many tokens its longest row has."""
        lengths = self.rows.lengths
        return np.array([lengths[rows].max() for rows in self.numbers])

    def __getitem__(self, example: int) -> list[RowItem]:
        """The rows of an example."""
        generator = np.random.default_rng((self.seed, self.epoch, example))
        rows = self.numbers[0 if example == len(self) else example]
        items = [self.rows[row] for row in rows]
        if self.kind is not None:
            items = [self.kind.draw(item, self.processor, generator) for item in items]
        if example == len(self):
            for item in items:
                labels = item["labels"]
                several = isinstance(labels, list)
                item["labels"] = [IGNORED] * len(labels) if several else type(labels)(IGNORED)
        return items

    def collate(self, examples: Sequence[list[RowItem]]) -> dict[str, Tensor]:
        """Padded tensors of their rows."""
        return self.rows.collate([item for items in examples for item in items])


class EpochOrder(Sampler[int]):
    """A new order of the rows in every epoch, filled up to whole batches with the blank row.

    Several processes must all have a batch in every step; accelerate would repeat rows from the
    start of the epoch to fill the last one. Blank rows count nothing, so the result stays that
    of one process.
    """

    def __init__(
        self,
        rows: TrainingRows,
        *,
        seed: int,
        batch: int,
        fill: bool = False,
        like_lengths: bool = False,
    ) -> None:
        self.rows = rows
        self.seed = seed
        self.batch = batch
        self.fill = fill
        self.lengths = rows.lengths if like_lengths else None
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Which epoch comes next; masking follows."""
        self.epoch = self.rows.epoch = epoch

    def __len__(self) -> int:
        count = len(self.rows)
        return -(-count // self.batch) * self.batch if self.fill else count

    def __iter__(self) -> Iterator[int]:
        generator = np.random.default_rng((self.seed, self.epoch))
        order = generator.permutation(len(self.rows))
        if self.lengths is not None:
            order = self._by_length(order, generator)
        yield from order.tolist()
        yield from [len(self.rows)] * (len(self) - len(order))

    def _by_length(self, order: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Rows of like length side by side within stretches of 50 batches, batches shuffled."""
        assert self.lengths is not None
        stretch = 50 * self.batch
        pieces: list[np.ndarray] = []
        for start in range(0, len(order), stretch):
            part = order[start : start + stretch]
            part = part[np.argsort(self.lengths[part], kind="stable")]
            pieces += [part[i : i + self.batch] for i in range(0, len(part), self.batch)]
        whole = [piece for piece in pieces if len(piece) == self.batch]
        rest = [piece for piece in pieces if len(piece) < self.batch]
        mixed = [whole[i] for i in generator.permutation(len(whole))]
        return np.concatenate(mixed + rest)


def examples_seen(rows: int, batch: int, steps: int) -> int:
    """Rows that so many steps saw; the last batch of an epoch may be smaller.

    >>> examples_seen(70, 32, 3), examples_seen(70, 32, 4)
    (70, 102)
    """
    per_epoch = -(-rows // batch)
    return steps // per_epoch * rows + min(steps % per_epoch * batch, rows)
