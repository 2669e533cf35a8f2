"""What a user must not miss about a result: said while it is made, and kept in its record."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headcount.base.names import split_words

Note = Callable[[str], None]
DONE = {
    "calibration": "calibrated",
    "repair": "repaired",
    "training": "trained",
    "selection": "selected",
    "evaluation": "scored",
    "held_out": "estimated",
}
"""What rows are for -> what was done on them."""


def log(text: str) -> None:
    """Where notes go when nobody else takes them: the log of Python, as a warning."""
    logging.getLogger("headcount").warning(text)


def seen_rows(rows: Mapping[str, Mapping[str, object]]) -> str | None:
    """Whether rows of calibration, repair or training are among those that are scored."""
    # a half of a split (train:held-out:0.5:0) is of that split
    split = str(rows.get("evaluation", {}).get("split")).partition(":")[0]
    uses = [use for use in ("calibration", "repair", "training") if use in rows]
    # "all" are both parts of a task that came as a single file
    same = [use for use in uses if split in (rows[use]["split"], "all")]
    if not same:
        return None
    return (
        f"The rows of {' and '.join(same)} are of {split}, which is scored: the score says "
        "little of other rows. Pass --train and --dev files, or another --split."
    )


def not_better(score: float, random: Sequence[float], metric: str) -> str | None:
    """Whether a pruning is no better than random ones of the same size.

    >>> not_better(0.22, [0.35, 0.31, 0.39], "accuracy")
    'This is not better than random: 0.2200, where 3 random prunings have 0.3500 in the mean.'
    >>> not_better(0.37, [0.35, 0.31, 0.39], "accuracy")
    'No measurable difference from random: 0.3700, where 3 random prunings have 0.3100 to 0.3900.'
    """
    if any(math.isnan(value) for value in (score, *random)):
        return "This cannot be held against random: a score is undefined."
    from headcount.tasks.metrics import get_metric

    sign = 1 if get_metric(metric).higher_is_better else -1
    mean = sum(random) / len(random)
    cuts = f"{len(random)} random prunings have" if len(random) > 1 else "a random pruning has"
    if sign * score <= sign * mean:
        average = f"{mean:.4f} in the mean" if len(random) > 1 else f"{mean:.4f}"
        return f"This is not better than random: {score:.4f}, where {cuts} {average}."
    if sign * score <= max(sign * value for value in random):
        spread = f"{min(random):.4f} to {max(random):.4f}"
        return f"No measurable difference from random: {score:.4f}, where {cuts} {spread}."
    return None


def rows_sentence(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Which rows were used for what, in one sentence; empty without any.

    >>> train = {"split": "train", "n": 512, "seed": 0}
    >>> dev = {"split": "dev", "n": 872, "seed": None}
    >>> rows_sentence({"calibration": train, "evaluation": dev})
    'Calibrated on 512 rows of train (seed 0), scored on 872 rows of dev.'
    >>> rows_sentence({"evaluation": {"split": "dev:held-out:0.5:0", "n": 400, "seed": None}})
    'Scored on half of dev (held-out set, 400 rows).'
    """
    parts = []
    for use, used in rows.items():
        count, split = used["n"], used["split"]
        where = f"rows of {split_words(split)}" if count is None else split_words(split, count)
        where += "" if used["seed"] is None else f" (seed {used['seed']})"
        if split == "given":
            where = "rows that were given" if count is None else f"{count:,} rows that were given"
        parts.append(f"{DONE.get(use, use)} on {where}")
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""
