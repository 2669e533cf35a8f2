from __future__ import annotations

import math
from typing import Any

from headcount.heads import Layout, Mask
from headcount.tasks.metrics import Difference, Score
from headcount.training.evaluation import Evaluation
from headcount.views.tables.evaluate import page

FULL = Mask.full(Layout.of(encoder=[2, 2]))


def evaluation(mask: Mask | None, *values: float) -> Evaluation:
    scores = tuple(
        Score(metric=name, value=value, low=value - 0.1, high=value + 0.1)
        for name, value in zip(("accuracy", "f1"), values, strict=False)
    )
    return Evaluation(task="t", split="dev", scores=scores, n=9, seconds=1.0, mask=mask)


def test_one_model_has_no_differences(shown: Any) -> None:
    told = shown(page([evaluation(None, 0.5, math.nan)], []))
    assert "t dev" in told
    assert "from all heads" not in told
    assert "undefined" in told


def test_every_mask_says_what_it_lost(shown: Any) -> None:
    cut = FULL.drop([("encoder", 0, 1)])
    lost = [[Difference(metric="accuracy", value=-0.1, low=-0.2, high=0.0)]]
    told = shown(page([evaluation(FULL, 0.5), evaluation(cut, 0.4)], lost)).splitlines()
    assert "from all heads" in told[2]
    assert [line.split()[0] for line in told[4:6]] == ["all", "12"]
    assert "−0.100 [−0.200, 0.000]" in told[5]
