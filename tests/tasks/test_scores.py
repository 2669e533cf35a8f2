from __future__ import annotations

import numpy as np

from headcount.tasks.metrics import Outcome, difference
from headcount.tasks.scores import Difference, Score


def test_a_score_of_an_older_record_is_read() -> None:
    old = {"metric": "f1", "value": 0.5, "low": 0.4, "high": 0.6, "draws_undefined": 3}
    assert str(Score.from_json(old)) == "f1 0.5000 [0.4000, 0.6000]"


def test_a_difference_is_printed_with_signs() -> None:
    assert str(Difference(metric="f1", value=-0.003, low=-0.0114, high=0.004)) == (
        "\N{MINUS SIGN}0.003 [\N{MINUS SIGN}0.011, +0.004]"
    )
    assert str(Difference(metric="f1", value=0.0, low=-0.0001, high=12.5)) == (
        "0.000 [0.000, +12.500]"
    )
    outcome = Outcome(np.array([1, 0]), np.array([1, 1]))
    right = Outcome(np.array([1, 1]), np.array([1, 1]))
    assert str(difference("accuracy", outcome, right, bootstrap=0)) == "+0.500"
