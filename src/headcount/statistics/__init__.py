"""Intervals, tests and corrections: one place for all tables.

Whether groups of runs differ from one of them, corrected for the number of comparisons:

    groups = {"random": {0: 0.5, 1: 0.6, 2: 0.4}, "surgeon": {0: 0.9, 1: 0.8, 2: 0.9}, ...}
    rows = compare_groups(groups, "random", higher_is_better=True)
    rows["surgeon"]["verdict"], rows["surgeon"]["p_corrected"], rows["surgeon"]["seeds_needed"]

A group is a label (anything that can be the key of a dict) and its scores by seed; a row for every
group but the reference has `mean`, `low`, `high` of the differences seed by seed, `p` (paired t),
`p_flips` (signs flipped), `p_corrected` (Holm over all groups), `comparisons`, `seeds`, `verdict`
("better", "alike" or "worse" than the reference) and, where that is "alike", `seeds_needed`.
`compare_pairs` does the same for any pairs of groups that are one table.
"""

from headcount.statistics.comparisons import compare_groups, compare_pairs, holm
from headcount.statistics.draws import Sides, Weighted, draw_sides, most_telling, widening
from headcount.statistics.intervals import (
    correlation_interval,
    deviation,
    interval,
    median_interval,
    percentiles,
    rank_correlation,
)
from headcount.statistics.pairs import paired, seeds_needed, sign_flips

__all__ = [
    "Sides",
    "Weighted",
    "compare_groups",
    "compare_pairs",
    "correlation_interval",
    "deviation",
    "draw_sides",
    "holm",
    "interval",
    "median_interval",
    "most_telling",
    "paired",
    "percentiles",
    "rank_correlation",
    "seeds_needed",
    "sign_flips",
    "widening",
]
