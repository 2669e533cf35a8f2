from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.runs.kinds.lm_eval import HarnessScore, HarnessTask, LmEval, LmEvalResult


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no task"),
        ({"tasks": ("piqa",), "limit": 0}, "limit must be at least 1, not 0"),
        ({"tasks": ("piqa",), "shots": -1}, "shots must be at least 0"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LmEval(**options)  # pyright: ignore[reportArgumentType]


def test_a_result_reads_back() -> None:
    score = HarnessScore(metric="acc", value=0.5, stderr=None, n=4)
    task = HarnessTask(task="piqa", version="1.0", shots=0, scores=(score,))
    result = LmEvalResult(model="m", against=None, harness="0.4.13", tasks=(task,))
    assert LmEvalResult.from_json(result.to_json()) == result
    assert result.columns() == {"piqa": 0.5}
