"""The summary over seeds: means, intervals inside the range and never of width 0, and tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from headcount.statistics import compare_pairs
from headcount.studies.summary import Scale, compare_with, over_seeds


def test_the_interval_is_students() -> None:
    values = [0.71, 0.74, 0.78]
    mean, low, high = over_seeds(values, Scale("accuracy", 1000))
    want = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert (mean, low, high) == pytest.approx((np.mean(values), *want))


@pytest.mark.parametrize(
    ("metric", "differences", "limits"),
    [
        ("accuracy", False, (0, 1)),
        ("accuracy", True, (-1, 1)),
        ("matthews", False, (-1, 1)),
        ("perplexity", False, (1, math.inf)),
        (None, False, (-math.inf, math.inf)),
        ("of a plugin", False, (-math.inf, math.inf)),
    ],
)
def test_intervals_stay_inside_the_range(
    metric: str | None, differences: bool, limits: tuple[float, float]
) -> None:
    scale = Scale(metric, 100)
    assert scale.limits(differences=differences) == limits
    _, low, high = over_seeds([1.0, 0.2], scale, differences=differences)
    assert limits[0] <= low < high <= limits[1]


@pytest.mark.parametrize("metric", ["accuracy", "matthews", "perplexity"])
@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("differences", [False, True])
def test_two_equal_seeds_have_no_interval_of_width_0(
    metric: str, value: float, differences: bool
) -> None:
    """Two differences of 0 in perplexity were 0 [0, 0]: a step was a share of the difference."""
    scale = Scale(metric, 100, level=20.0)
    value = max(value, scale.limits(differences=differences)[0])
    mean, low, high = over_seeds([value, value], scale, differences=differences)
    assert mean == value
    assert high - low > 0.01


def test_equal_seeds_of_unknown_rows_have_no_interval() -> None:
    mean, low, high = over_seeds([0.8, 0.8], Scale("accuracy"))
    assert mean == 0.8
    assert math.isnan(low)
    assert math.isnan(high)


def test_one_seed_has_the_interval_of_its_rows() -> None:
    assert over_seeds([0.8], Scale("f1", 50), single=(0.7, 0.9)) == (0.8, 0.7, 0.9)
    mean, low, _ = over_seeds([0.8], Scale("f1", 50), single=(None, None))
    assert mean == 0.8
    assert math.isnan(low)
    assert all(math.isnan(value) for value in over_seeds([]))


def test_groups_are_tested_against_their_references_as_one_table() -> None:
    groups = {
        ("random", 0.5): {0: 0.5, 1: 0.52, 2: 0.48},
        ("surgeon", 0.5): {0: 0.8, 1: 0.83, 2: 0.79},
        ("cluster", 0.5): {0: 0.5, 1: 0.6, 2: 0.45},
        ("surgeon", 0.9): {0: 0.5},
    }
    tests = compare_with(groups, [lambda label: ("random", label[1])], Scale("accuracy", 50))
    pairs = [((method, 0.5), ("random", 0.5)) for method in ("surgeon", "cluster")]
    want = compare_pairs(groups, pairs, higher_is_better=True, step=1 / 50)
    assert tests == want
    assert {row["comparisons"] for row in tests.values()} == {2}
    lower = compare_with(groups, [lambda label: ("random", label[1])], Scale("perplexity", 50))
    assert lower[pairs[0]]["verdict"] == "worse"


def test_the_widest_step_of_several_scales_counts() -> None:
    groups = {"random": {0: 0.5, 1: 0.5}, "surgeon": {0: 0.54, 1: 0.54}}
    scales = Scale("accuracy", 1000), Scale("accuracy", 10)
    row = compare_with(groups, [lambda _: "random"], *scales)["surgeon", "random"]
    want = compare_pairs(groups, [("surgeon", "random")], higher_is_better=True, step=0.1)
    assert row == want["surgeon", "random"]
