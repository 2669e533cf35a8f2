from __future__ import annotations

from headcount.runs.kinds.evaluate import Evaluate
from headcount.runs.run import Run
from runs.kinds.asking import FEW, TASK, assert_asked_again


def test_a_record_asked_again_gives_the_same(trained):
    options = Evaluate(scoring=FEW, masks=("444444",))
    record = assert_asked_again(Run("evaluate", str(trained[1]), task=TASK, options=options))
    assert [each["n"] for each in record["masks"]] == [record["n"]] == [20]
