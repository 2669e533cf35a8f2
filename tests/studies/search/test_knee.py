from __future__ import annotations

import math

import numpy as np
import pytest

from headcount.studies.search.knee import find_knee, knee, worth_of


@pytest.mark.parametrize("rate", [3.0, 5.0, 12.0])
def test_the_knee_of_a_known_curve_is_where_its_slope_is_the_lines(rate):
    """1 - exp(-r x), scaled to its ends, is furthest above the line where its slope is 1."""
    x = np.arange(2001)
    y = 1 - np.exp(-rate * x / 2000)
    wanted = math.log(rate / (1 - math.exp(-rate))) / rate
    at, above = knee(x.tolist(), y.tolist())
    assert at / 2000 == pytest.approx(wanted, abs=1e-3)
    assert above > 0


def test_scale_and_order_do_not_matter():
    x, y = [0, 10, 20, 30, 40], [0.1, 0.7, 0.9, 0.95, 1.0]
    assert knee(x[::-1], [5 + 3 * value for value in y[::-1]])[0] == knee(x, y)[0] == 10


def test_a_wobble_is_no_knee():
    x = list(range(0, 50, 5))
    steady = [min(1.0, count / 20) for count in x]
    noisy = [value + 0.03 * (-1) ** place for place, value in enumerate(steady)]
    assert knee(x, steady)[0] == knee(x, noisy)[0] == 20


def test_a_flat_or_falling_curve_needs_no_heads():
    assert knee([0, 5, 10], [0.5, 0.5, 0.5]) == (0, 0.0)
    assert knee([0, 5, 10], [0.9, 0.5, 0.1])[0] == 0


def test_few_counts_are_scored_and_the_knee_is_found():
    asked: set[int] = set()

    def worth(kept: int) -> float:
        asked.add(kept)
        return min(1.0, kept / 19)

    at, _ = find_knee(range(72), 72, worth)
    assert abs(at - 19) <= 2
    assert len(asked) <= 9 + 1 + 4


def test_lower_scores_are_turned_round():
    assert worth_of(0.8, "f1", True) == 0.8
    assert worth_of(math.e, "perplexity", False) == pytest.approx(-1)
    assert worth_of(3.0, "loss", False) == -3.0
