"""Many comparisons in one table: Holm's correction, and what may be said after it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from headcount.statistics.intervals import deviation
from headcount.statistics.pairs import differences_of, paired, seeds_needed

ALPHA = 0.05
"""The chance that a table in which nothing differs says somewhere that something does."""

Label = TypeVar("Label", bound=Hashable)


def compare_groups(
    groups: Mapping[Label, Mapping[int, float]],
    reference: Label,
    *,
    higher_is_better: bool,
    step: float = 0.0,
) -> dict[Label, dict[str, Any]]:
    """Every group of scores by seed against the reference group: `compare_pairs`, by label."""
    pairs = [(label, reference) for label in groups if label != reference]
    rows = compare_pairs(groups, pairs, higher_is_better=higher_is_better, step=step)
    return {label: row for (label, _), row in rows.items()}


def compare_pairs(
    groups: Mapping[Label, Mapping[int, float]],
    pairs: Iterable[tuple[Label, Label]],
    *,
    higher_is_better: bool,
    step: float = 0.0,
) -> dict[tuple[Label, Label], dict[str, Any]]:
    """For every pair of groups what `paired` says, and a verdict on the first of the two.

    `p_corrected` is Holm's over all pairs, which are the `comparisons` of one table; (a, b) and
    (b, a) are one comparison, and one without a p (a single seed) is none. The verdict is "better"
    or "worse" where `p_corrected` is below 5 %, "alike" otherwise: not told apart. `seeds_needed`
    is then with how many seeds a t-test at 5 % / `comparisons`, the strictest of Holm's steps,
    would see the difference four times in five; None where that cannot be said.

    >>> groups = {"a": {0: 0.9, 1: 0.8, 2: 0.9}, "b": {0: 0.5, 1: 0.6, 2: 0.4}, "c": {0: 1.0}}
    >>> rows = compare_pairs(groups, [("a", "b"), ("c", "b")], higher_is_better=True)
    >>> row = rows["a", "b"]
    >>> row["comparisons"], round(row["p_corrected"], 3), row["verdict"], row["seeds_needed"]
    (1, 0.053, 'alike', 4)
    """
    rows: dict[tuple[Label, Label], dict[str, Any]] = {
        (label, other): dict(paired(groups[label], groups[other], step)) for label, other in pairs
    }
    raw = {frozenset(pair): row["p"] for pair, row in rows.items()}
    corrected = dict(zip(raw, holm(list(raw.values())), strict=True))
    comparisons = sum(not math.isnan(p) for p in raw.values())
    for (label, other), row in rows.items():
        row["p_corrected"] = p = corrected[frozenset((label, other))]
        row["comparisons"] = comparisons
        row["verdict"], row["seeds_needed"] = "alike", None
        if p < ALPHA:
            row["verdict"] = "better" if (row["mean"] > 0) is higher_is_better else "worse"
        elif comparisons:
            spread = deviation(differences_of(groups[label], groups[other]))
            row["seeds_needed"] = seeds_needed(row["mean"], spread, alpha=ALPHA / comparisons)
    return rows


def holm(ps: Sequence[float]) -> list[float]:
    """Every p adjusted by Holm's rule: below 5 % means that it is rejected with the others.

    The smallest of m is multiplied by m, the next by m − 1, and so on; none becomes smaller than
    one before it. What is not a number is no test: it stays so and is not counted.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted((index for index, p in enumerate(ps) if not math.isnan(p)), key=ps.__getitem__)
    adjusted, largest = [math.nan] * len(ps), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * ps[index]))
        adjusted[index] = largest
    return adjusted
