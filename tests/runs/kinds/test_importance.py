from __future__ import annotations

from headcount.runs.kinds.importance import ImportanceOptions
from headcount.runs.run import Run
from headcount.sensitivity.options import GradientOptions
from runs.kinds.asking import TASK, assert_asked_again


def test_a_record_asked_again_gives_the_same(trained):
    options = ImportanceOptions(gradient_options=GradientOptions(samples=8))
    record = assert_asked_again(Run("importance", str(trained[1]), task=TASK, options=options))
    assert (record["n"], record["rows"]["measured"]["sampled"]) == (8, 8)
