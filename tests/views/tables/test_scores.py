from __future__ import annotations

import math
from typing import Any

from headcount.heads import Layout, Mask
from headcount.sensitivity.gradients import ImportanceResult
from headcount.tasks.metrics import Difference, Score
from headcount.training.evaluation import Evaluation
from headcount.views.tables.scores import attention_table, evaluation_table, importance_table

FULL = Mask.full(Layout.of(encoder=[2, 2]))


def evaluation(mask: Mask | None, *values: float) -> Evaluation:
    scores = tuple(
        Score(metric=name, value=value, low=value - 0.1, high=value + 0.1)
        for name, value in zip(("accuracy", "f1"), values, strict=False)
    )
    return Evaluation(task="t", split="dev", scores=scores, n=9, seconds=1.0, mask=mask)


def test_one_model_has_no_differences(shown: Any) -> None:
    told = shown(evaluation_table([evaluation(None, 0.5, math.nan)], []))
    assert "t dev" in told
    assert "from all heads" not in told
    assert "undefined" in told


def test_every_mask_says_what_it_lost(shown: Any) -> None:
    cut = FULL.drop([("encoder", 0, 1)])
    lost = [[Difference(metric="accuracy", value=-0.1, low=-0.2, high=0.0)]]
    told = shown(evaluation_table([evaluation(FULL, 0.5), evaluation(cut, 0.4)], lost)).splitlines()
    assert "from all heads" in told[2]
    assert [line.split()[0] for line in told[4:6]] == ["all", "12"]
    assert "−0.100 [−0.200, 0.000]" in told[5]


def test_layers_and_heads(shown: Any) -> None:
    scores = ImportanceResult(
        Layout.of(encoder=[2, 1]), (0.5, 0.25, 0.125), (0.01, 0.02, 0.03), 40, 0.7
    )
    told = shown(importance_table(scores))
    assert "40 examples, mean loss 0.7000" in " ".join(told.split())
    rows = [line.split() for line in told.splitlines()]
    assert ["layer", "0", "1", "error", "≤"] in rows
    assert ["encoder", "0", "0.500", "0.250", "0.020"] in rows
    assert ["encoder", "1", "0.125", "0.030"] in rows


def test_small_numbers_have_more_digits(shown: Any) -> None:
    scores = ImportanceResult(Layout.of(encoder=[1]), (0.001,), (0.0001,), 4, 0.7).normalized(
        "none"
    )
    assert "0.00100" in shown(importance_table(scores))


def head(index: int, run: int = 0, **more: Any) -> dict[str, Any]:
    most = {"token": "king", "position": 2, "share": 0.5}
    said = {"entropy": 1.5, "distance": 2.0, "most_attended": most}
    return {"stack": "encoder", "layer": 1, "head": index, "run": run, **said, **more}


def data(*heads: dict[str, Any], pruned: str | None = None) -> dict[str, Any]:
    return {"pruned": pruned, "heads": list(heads), "tokens": {"encoder": {"keys": ["a", "b"]}}}


def test_one_model(shown: Any) -> None:
    told = shown(attention_table(data(head(0), head(3, most_attended=None))))
    rows = [line.split() for line in told.splitlines()]
    assert ["encoder.1.0", "1.50", "2.00", "king", "(2)", "0.50"] in rows
    assert "nothing" in told
    assert "after:" not in told
    assert told.endswith("encoder: a b")


def test_two_models_and_a_layer_that_runs_twice(shown: Any) -> None:
    gone = head(0, after=None, divergence=None)
    kept = head(1, run=1, after=head(1), divergence=0.25)
    told = shown(attention_table(data(gone, kept, pruned="small")))
    assert "removed" in told
    assert "encoder.1.1, run 1" in told
    assert "0.250" in told
    assert "after: entropy, bits" in told
