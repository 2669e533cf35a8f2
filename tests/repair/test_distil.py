from __future__ import annotations

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.repair.distil import Distil


def test_what_cannot_be_is_refused():
    for wrong, words in [
        ({"hidden": -1.0}, "not negative: -1"),
        ({"hidden": "1"}, "hidden is a number, not the text '1'"),
        ({"hold_back": 0.0}, "above 0 and below 1, not 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
    ]:
        with pytest.raises(UsageError, match=words):
            Distil(**wrong)


def test_the_options_are_those_of_training_and_its_own():
    step = Distil(steps=3, hidden=0.5)
    assert isinstance(step, hc.TrainOptions)
    assert step.identity() == hc.TrainOptions(steps=3).identity() | {
        "hidden": 0.5,
        "hold_back": 0.1,
    }
    assert Distil(save_every=1).identity() == Distil().identity()
