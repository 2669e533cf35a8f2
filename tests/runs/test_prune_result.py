"""What a prune says of itself: columns, the score it is about, and steps with what they add."""

from __future__ import annotations

from headcount.runs.prune_result import PruneResult, RepairStep
from runs.whole import result

SCORES = {
    "metric": "f1",
    "before": {"score": 0.9},
    "after": {"score": 0.8, "n": 9},
    "difference": {"value": -0.1, "low": -0.2, "high": 0.0},
    "random": {"mean": 0.5},
}


def test_columns_of_a_prune_with_and_without_scores() -> None:
    heads = {"heads": {"before": 12, "after": 6, "kept": "222"}, "parameters": {"after": 100}}
    scored = result(PruneResult, {**heads, "scores": SCORES})
    assert scored.columns() == {
        "heads": 12, "kept": 6, "pattern": "222", "full": 0.9, "difference": -0.1,
        "difference_low": -0.2, "difference_high": 0.0, "random": 0.5, "parameters": 100,
    }  # fmt: skip
    assert scored.evaluated is not None
    assert (scored.evaluated.score, scored.evaluated.n) == (0.8, 9)
    bare = result(PruneResult, {"heads": heads["heads"]})
    assert bare.evaluated is None
    assert {name for name, value in bare.columns().items() if value is None} == {
        "full", "difference", "difference_low", "difference_high", "random", "parameters",
    }  # fmt: skip


def test_a_step_has_what_its_repair_adds() -> None:
    data = {"name": "recover", "options": {}, "rows": "sst2", "steps": 0, "examples": 0,
            "seconds": 1.5, "layers": [{"fit": 0.5}]}  # fmt: skip
    step = RepairStep.from_json(data)
    assert step.details == {"layers": [{"fit": 0.5}]}
    assert step.to_json() == data
    gates = RepairStep(name="finetune", options={}, with_gates=True)
    assert gates.to_json()["with_gates"] is True
