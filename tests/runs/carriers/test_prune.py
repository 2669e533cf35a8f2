from __future__ import annotations

import headcount as hc
from headcount.runs.run import Run
from runs.carriers.asking import FEW, TASK, assert_asked_again


def test_a_record_asked_again_gives_the_same(trained):
    options = hc.Prune(method=hc.Random(), ratio=0.5, scoring=FEW, baseline=1)
    record = assert_asked_again(Run("prune", str(trained[1]), task=TASK, seed=3, options=options))
    assert "parameters" in record


def test_gates_that_are_closed_instead(trained):
    options = hc.Prune(
        method=hc.Importance(), ratio=0.5, scoring=FEW, baseline=0, gated=True,
        calibration=hc.Calibration(samples=8),
    )  # fmt: skip
    record = assert_asked_again(Run("prune", str(trained[1]), task=TASK, options=options))
    assert "parameters" not in record
