from __future__ import annotations

from headcount.likeness.options import DistanceOptions
from headcount.runs.kinds.redundancy import RedundancyOptions
from headcount.runs.run import Run
from runs.kinds.asking import READING, assert_asked_again


def test_a_record_asked_again_gives_the_same(trained):
    options = RedundancyOptions(
        input_options=READING, distance_options=DistanceOptions(distances=("js",))
    )
    record = assert_asked_again(Run("redundancy", str(trained[1]), options=options))
    assert record["rows"]["measured"]["n"] == 3
