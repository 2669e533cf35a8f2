from __future__ import annotations

import headcount.statistics as statistics


def test_one_place_for_all_of_it() -> None:
    assert all(callable(getattr(statistics, name)) for name in statistics.__all__)


def test_groups_as_its_first_lines_say() -> None:
    groups = {"random": {0: 0.5, 1: 0.6, 2: 0.4}, "surgeon": {0: 0.9, 1: 0.8, 2: 0.9}}
    row = statistics.compare_groups(groups, "random", higher_is_better=True)["surgeon"]
    assert set(row) == {
        "mean", "low", "high", "p", "p_flips", "p_corrected", "comparisons", "seeds", "verdict",
        "seeds_needed",
    }  # fmt: skip
    assert all(f"`{name}`" in str(statistics.__doc__) for name in row)
