from __future__ import annotations

from headcount.runs.kinds import Importance
from headcount.runs.run import Run
from headcount.sensitivity.options import Measuring
from runs.carriers.asking import TASK, assert_asked_again


def test_a_record_asked_again_gives_the_same(trained):
    options = Importance(measuring=Measuring(samples=8))
    record = assert_asked_again(Run("importance", str(trained[1]), task=TASK, options=options))
    assert (record["n"], record["rows"]["measured"]["sampled"]) == (8, 8)
