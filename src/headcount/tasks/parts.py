"""One file as two parts that share no row: one to select and train on, one to be scored.

Heads that were selected, projections that were solved or weights that were trained on some rows
look better on those rows than on any others. So a task that comes as a single file is never scored
on what was used to decide: it is split once, always with the same seed, for every command alike.

Any split can be divided into two halves as well, by a name that says how: `dev:selection:0.5:0` and
`dev:held-out:0.5:0` are its selection set and its held-out set, half of the rows each, drawn with
seed 0.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headcount.base.errors import UsageError
from headcount.base.names import HALF, SETS
from headcount.tasks.task import Examples

SEED = 0
"""Not that of a run: rows that decided under one seed must not be scored under another."""
SCORED = 1 / 3
"""Share of the rows that are scored."""
SIDES = tuple(SETS)
"""The halves of a split."""
WORDS = 32
"""A text of a single line is cut into pieces of so many words, or into four."""

talk = logging.getLogger("headcount")


@dataclass(frozen=True, eq=False)
class Parts:
    """Which rows of a file, counted from 0, are in which split."""

    file: str
    """Empty for rows in memory."""
    rows: Mapping[str, np.ndarray]
    seed: int = SEED

    def __str__(self) -> str:
        decide, scored = len(self.rows["train"]), len(self.rows["dev"])
        if not self.file:
            return (
                "The rows have no train and dev of their own and were split "
                f"(seed {self.seed}): {decide} are for selection and training (split train), "
                f"{scored} are scored (split dev). Pass {{'train': …, 'dev': …}} for rows of your "
                "own, or score the split all."
            )
        return (
            f"'{self.file}' has no train and dev of its own and was split (seed {self.seed}): "
            f"{decide} of its rows are for selection and training (split train), {scored} are "
            "scored (split dev). "
            "Pass --split all to score every row, or --train and --dev for files of your own."
        )

    def to_json(self) -> dict[str, object]:
        """A plain dict, with the number of rows in each part."""
        sizes = {split: len(rows) for split, rows in self.rows.items()}
        return {"file": self.file, "seed": self.seed, "rows": sizes}


def apart(
    splits: Mapping[str, Examples], file: str, *, packed: bool = False
) -> tuple[dict[str, Examples], Parts | None]:
    """The splits as they are where there are several; a single one as `train`, `dev` and `all`.

    Equal rows go to the same part. `packed` texts stay in one piece, and no line is in both. What
    cannot be split, because all rows are alike, stays as it is.
    """
    if len(splits) != 1:
        return dict(splits), None
    (rows,) = splits.values()
    pieces = rows
    if packed:
        pieces = Examples((_pieces(rows.texts[0]),))
    train, dev = _apart(pieces, SCORED, SEED, packed)
    if not (len(train) and len(dev)):
        return dict(splits), None
    parts = Parts(file, {"train": train, "dev": dev})
    talk.warning("%s", parts)
    return {"train": pieces.take(train), "dev": pieces.take(dev), "all": rows}, parts


def half_name(split: str, side: str, share: float, seed: int) -> str:
    """The name of one half of a split.

    >>> half_name("dev", "held-out", 0.5, 0)
    'dev:held-out:0.5:0'
    """
    return f"{split}:{side}:{share:g}:{seed}"


def read_half(name: str) -> tuple[str, str, float, int] | None:
    """What `half_name` was given; None where it is the name of no half."""
    match = HALF.fullmatch(name)
    if match is None:
        return None
    try:
        share = float(match[3])
    except ValueError:
        return None
    return (match[1], match[2], share, int(match[4])) if 0 < share < 1 else None


def half_of(rows: Examples, name: str, *, packed: bool = False) -> Examples:
    """The rows of one half; equal rows are in one half only. A split of one row has no halves."""
    half = read_half(name)
    assert half is not None
    split, side, share, seed = half
    pieces = Examples((_pieces(rows.texts[0]),)) if packed else rows
    sides = _apart(pieces, share, seed, packed)
    if not all(len(numbers) for numbers in sides):
        raise UsageError(
            f"The rows of '{split}' cannot be drawn into two halves that share no row: it has "
            f"{len(rows)}, or all are alike."
        )
    return pieces.take(sides[SIDES.index(side)])


def _apart(rows: Examples, share: float, seed: int, packed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the two parts; the second has about this share of the rows."""
    if packed:
        return _stretch_apart([str(line) for line in rows.texts[0]], share, seed)
    keys = [(group,) for group in rows.groups or ()] or list(zip(*rows.texts, strict=True))
    return _rows_apart(keys, share, seed)


def _rows_apart(
    keys: Sequence[tuple[str | None, ...]], share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the two parts, each ascending; equal keys are never on two sides."""
    number = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    group = np.array([number[key] for key in keys])
    order = np.random.default_rng(seed).permutation(len(number))
    sizes = np.cumsum(np.bincount(group)[order])
    count = int(np.searchsorted(sizes, share * len(keys))) + 1
    scored = np.isin(group, order[: min(count, len(number) - 1)])
    return np.flatnonzero(~scored), np.flatnonzero(scored)


def _stretch_apart(lines: Sequence[str], share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Line numbers: one stretch that is scored, and the lines around it that it has not, too."""
    ends = np.cumsum([len(line) + 1 for line in lines])
    size = share * ends[-1]
    start = np.random.default_rng(seed).random() * (ends[-1] - size)
    first, last = np.searchsorted(ends, [start, start + size], side="right")
    inside = np.arange(first, max(last, first + 1))
    scored = {lines[number] for number in inside}
    around = [number for number, line in enumerate(lines) if not line.strip() or line not in scored]
    return np.array(around, dtype=np.int64), inside


def _pieces(lines: Sequence[str | None]) -> list[str]:
    """The lines; a single one is cut at spaces, with nothing lost."""
    if len(lines) > 1:
        return [str(line) for line in lines]
    words = re.findall(r"\s*\S+\s*", str(lines[0]))
    size = max(1, min(WORDS, len(words) // 4))
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)]
