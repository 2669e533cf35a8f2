"""What a result looks like at the prompt: one line, however large the model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from behaviour.test_result import roles
from headcount.changes.correlation import Correlation, correlate
from headcount.changes.drift import Drift
from headcount.changes.maps import AttentionMaps, HeadUse, Tokens
from headcount.changes.measure import Transfer
from headcount.changes.recall import RankedHeads, Recall
from headcount.changes.weights import WeightChange
from headcount.exports.export import ExportResult
from headcount.heads import Head, Layout, Mask, Scores, Stack
from headcount.learned.run import LearnedGates
from headcount.learned.trace import Trace
from headcount.likeness.compare import MatrixComparison
from headcount.likeness.result import Measurement, Redundancy
from headcount.pruning.methods import Decision
from headcount.sensitivity.gradients import ImportanceResult
from headcount.tasks.catalog import open_task
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.metrics import Difference, Outcome, Score
from headcount.tasks.task import Examples
from headcount.training.evaluation import Evaluation
from headcount.training.finetune import TrainingResult

LARGE = Layout(
    (
        Stack("encoder", tuple(range(1, 81)), tuple(range(1, 81)), (1,) * 80),
        Stack("cross", (64,) * 80, (8,) * 80, (1,) * 80),
        Stack("decoder", (64,) * 79 + (48,), (8,) * 80, (3,) * 80),
    ),
    ("12 x SomeVeryLongNameOfAnAttention (model.layers.*.attention)",),
)
SMALL = Layout.of(encoder=[12] * 12)
TASK = "a-task-whose-name-is-long-\x1b[2J-" + "x" * 80
SCORE = Score(metric="accuracy", value=0.91, low=0.9, high=0.92)


def scores(layout: Layout, low: float = -1.23456789e-300) -> Scores:
    return Scores(layout, tuple(np.linspace(low, 1.23456789e300, len(layout))))


def redundancy(layout: Layout, names: list[str]) -> Redundancy:
    measured = {}
    for stack in layout.stacks:
        matrix = np.ones((stack.total, stack.total)) - np.eye(stack.total)
        measured |= {(stack.name, name): Measurement(matrix, matrix / 7) for name in names}
    return Redundancy(layout=layout, measured=measured, count=1000, provenance={})


def evaluation(**changes: Any) -> Evaluation:
    about: dict[str, Any] = {"task": "sst2", "split": "dev", "n": 872, "seconds": 1.0}
    return Evaluation(**{**about, "scores": (SCORE,) * 5, **changes})


def transfer(layout: Layout) -> Transfer:
    drift = Drift(attention=scores(layout), stderr=scores(layout), layers=(), n=20)
    change = WeightChange(total=scores(layout), parts={}, layers={}, spread={"all": 0.1})
    importance = {TASK: scores(layout)}
    return Transfer(layout=layout, drift=drift, change=change, importance=importance)


def learned(layout: Layout) -> LearnedGates:
    trace = Trace(layout, steps=[0, 9], values=[np.ones(9999)], opened=[12] * 999)
    return LearnedGates(
        model=None,  # pyright: ignore[reportArgumentType]
        mask=Mask.full(layout), trace=trace, steps=999, rows=67349, examples=9, seconds=98765.4,
        route={"a": "b" * 200},
    )  # fmt: skip


MIDDLE = Layout.of(encoder=[40] * 3)
RESULTS = [
    LARGE, SMALL, Mask.full(LARGE), Mask.full(LARGE).drop(list(LARGE)[::3]), Mask.full(SMALL),
    scores(LARGE), scores(SMALL), Scores(SMALL, (math.nan,) * 144),
    ImportanceResult(LARGE, scores(LARGE).values, (0.1,) * len(LARGE), 9),
    redundancy(MIDDLE, ["js"]), redundancy(MIDDLE, [f"distance-{n}" for n in range(12)]),
    redundancy(MIDDLE, ["js"])["js"],
    roles(LARGE), roles(SMALL)["same"],
    evaluation(), evaluation(task=TASK), evaluation(mask=Mask.full(LARGE)),
    SCORE, Difference(metric="accuracy", value=-0.1, low=-0.2, high=math.nan),
    Outcome(np.zeros(9999), np.zeros(9999)),
    TrainingResult(  # pyright: ignore[reportArgumentType]
        model=None, steps=9, rows=8, seconds=1e6, curve=(), evaluation=evaluation(task=TASK)),
    learned(LARGE), learned(SMALL), learned(LARGE).trace, Decision(mask=Mask.full(LARGE)),
    transfer(LARGE), transfer(LARGE).drift, transfer(LARGE).change, correlate([1, 2, 3], [1, 2, 4]),
    Recall(value=0.123456789, chance=0.5, p=1e-9, needed=999, kept=999, both=999, heads=9999),
    RankedHeads(task=TASK, metric="accuracy", ranking=scores(LARGE), scores={1: 0.5}),
    AttentionMaps(
        layout=SMALL, tokens={"encoder": Tokens(("a",) * 99, ("b",) * 99)},
        before={HeadUse(Head("encoder", 0, 0)): np.zeros((99, 99), np.float32)}, text="long " * 99,
    ),
    MatrixComparison(files=(TASK, TASK), between_distances=(), between_files=(), where=()),
    ExportResult(folder=Path("/a" * 90), to="onnx", files=("m",) * 9, bytes=10**9, difference=1e-7),
    open_task("mnli"), Examples((["a"] * 999,)), EncodedRows({"input_ids": [[1] * 99] * 99}),
]  # fmt: skip


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_a_result_fits_a_line(result: object) -> None:
    text = repr(result)
    assert text.startswith(f"{type(result).__name__}(")
    assert text.endswith(")")
    assert len(text) <= 100
    assert text.isprintable()


def test_the_lines_say_what_matters() -> None:
    assert repr(Mask.full(LARGE)) == (
        "Mask(encoder: 80 x 1 to 80 cross: 80 x 64 decoder: 80 x 48 to 64; "
        "keeps 13464 of 13464 heads)"
    )
    assert repr(LARGE).startswith("Layout(13464 heads; encoder: 80 x 1 to 80; cross: 80 x 64;")
    assert "attention not understood" in repr(Layout(SMALL.stacks, ("x" * 200,)))
    assert repr(Scores(SMALL, (1.0, math.nan) * 72)) == (
        "Scores(144 heads; lowest encoder.0.0 1, highest encoder.0.0 1; 72 NaN)"
    )
    assert repr(evaluation(scores=(SCORE,))) == (
        "Evaluation(sst2 dev: accuracy 0.9100 [0.9000, 0.9200]; 872 rows)"
    )
    assert isinstance(correlate([1, 2, 3], [1, 2, 4]), Correlation)
