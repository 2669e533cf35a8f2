from __future__ import annotations

from headcount.runs.kinds.roles import RolesOptions
from headcount.runs.run import Run
from runs.kinds.asking import READING, assert_asked_again


def test_a_record_asked_again_gives_the_same(trained):
    record = assert_asked_again(
        Run("roles", str(trained[1]), options=RolesOptions(input_options=READING))
    )
    assert record["rows"]["measured"]["n"] == 3
