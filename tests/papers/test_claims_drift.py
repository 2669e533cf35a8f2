"""Fine-tuning with planted drift: LO4, LO6 and LO8."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from headcount.changes.correlation import correlate
from headcount.papers.claims import Word
from papers.pocket_study import PocketStudy

TASKS = ("pocket-acceptability", "pocket-entailment", "pocket-similarity")


def plant(folder: Path, record: dict[str, dict[str, object]]) -> PocketStudy:
    study = PocketStudy(folder, "drift")
    study.fill("drift", lambda cell: record[str(cell.run.task)])
    return study


def at(both: int, needed: int, kept: int = 40, x: float = 0.75) -> dict[str, object]:
    value = both / needed if needed else None
    return {"at": x, "value": value, "chance": kept / 48, "p": 0.5, "needed": needed,
            "kept": kept, "both": both, "heads": 48}  # fmt: skip


@pytest.mark.parametrize(
    ("both", "word"),
    [((29, 30, 30), "holds"), ((10, 11, 12), "does not hold"), ((24, 27, 30), "undecided")],
)
def test_recall_comes_out_as_planted(tmp_path: Path, both: Sequence[int], word: Word) -> None:
    rows = {
        task: {
            "recall": [at(9, 30, 8, x=0.5), at(9, 30, 8, x=0.6), at(count, 30), at(30, 30, x=0.9)]
        }
        for task, count in zip(TASKS, both, strict=True)
    }
    verdict = plant(tmp_path, rows).judge("LO4")
    assert verdict.word == word
    assert verdict.tested[0].value == pytest.approx(sum(both) / 90)
    assert f"as many at random recall {40 / 48:.3f}" in verdict.tested[0].note
    tasks, (fewer,) = verdict.tested[1:4], verdict.tested[4:]  # at 0.9 no other heads are kept
    assert [row.value for row in tasks] == pytest.approx([heads / 30 for heads in both])
    assert tasks[0].n == 30
    assert (fewer.what, fewer.value) == ("recall at 0.5, mean over tasks", pytest.approx(0.3))
    assert "8 of 48 heads are kept" in fewer.note


def test_a_task_that_needs_no_heads_has_no_recall(tmp_path: Path) -> None:
    rows = {task: {"recall": [at(0, 0)]} for task in TASKS}
    assert plant(tmp_path / "a", rows).judge("LO4").word == "not run"
    rows[TASKS[0]] = {"recall": [at(9, 10)]}
    assert plant(tmp_path / "b", rows).judge("LO4").word == "undecided"
    rows[TASKS[0]] = {"recall": [at(2, 10)]}
    verdict = plant(tmp_path / "c", rows).judge("LO4")
    (row,) = verdict.tested  # the only task decides by its own interval
    assert (verdict.word, row.n, row.high) == ("does not hold", 10, pytest.approx(0.5561, abs=1e-4))


def layers(values: Sequence[float]) -> dict[str, object]:
    rows = [
        {"stack": "encoder", "layer": layer, "mean": value, "max": 1 - value, "hidden": value**2}
        for layer, value in enumerate(values)
    ]
    other = {"stack": "decoder", "layer": 0, "mean": 9.0, "max": 9.0, "hidden": 9.0}
    return {"drift": {"layers": [*rows, other]}}


UP, DOWN = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
MIXED = [0.3, 0.1, 0.4, 0.2, 0.5, 0.3]


@pytest.mark.parametrize(
    ("values", "word"), [(UP, "holds"), (DOWN, "does not hold"), (MIXED, "undecided")]
)
def test_layers_drift_as_planted(tmp_path: Path, values: list[float], word: Word) -> None:
    verdict = plant(tmp_path, {task: layers(values) for task in TASKS}).judge("LO6")
    assert [row.verdict for row in verdict.tested[:4]] == [word] * 4
    plain = correlate(range(6), values)
    first = verdict.tested[0]
    assert (first.value, first.low, first.high) == pytest.approx(
        (plain.spearman, plain.spearman_low, plain.spearman_high)
    )
    assert first.note.endswith("; 6 layers give little power")
    assert verdict.tested[-2].value == pytest.approx(-plain.spearman)
    assert verdict.tested[-1].value == pytest.approx(plain.spearman)


def test_the_mean_over_tasks_decides(tmp_path: Path) -> None:
    steep = [10 * value for value in UP]
    rows = {TASKS[0]: layers(DOWN), TASKS[1]: layers(DOWN), TASKS[2]: layers(steep)}
    verdict = plant(tmp_path, rows).judge("LO6")
    assert [row.verdict for row in verdict.tested[:4]] == [
        "holds",
        "does not hold",
        "does not hold",
        "holds",
    ]


def correlated(r: float, n: int) -> dict[str, object]:
    """A correlation of exactly this r over n heads, as a run writes it."""
    rng = np.random.default_rng(0)
    x, e = rng.standard_normal(n), rng.standard_normal(n)
    x = (x - x.mean()) / x.std()
    e = e - e.mean() - x * (x @ e) / n
    return correlate(x, r * x + (1 - r * r) ** 0.5 * e / e.std()).to_json()


@pytest.mark.parametrize(
    ("r", "n", "word"),
    [
        (0.02, 5000, "holds"),
        (0.6, 48, "does not hold"),
        (-0.6, 48, "does not hold"),  # the other way is a correlation, too
        (0.05, 48, "undecided"),
    ],
)
def test_drift_goes_with_importance_as_planted(
    tmp_path: Path, r: float, n: int, word: Word
) -> None:
    little = correlated(0.01, n)
    rows: dict[str, dict[str, object]] = {
        task: {"correlations": {task: little, "pocket-corpus": little}} for task in TASKS
    }
    rows[TASKS[1]] = {"correlations": {TASKS[1]: little, "pocket-corpus": correlated(r, n)}}
    verdict = plant(tmp_path, rows).judge("LO8")
    first = verdict.tested[0]
    assert verdict.word == word
    assert first.value == pytest.approx(abs(r))
    assert first.what.endswith(f"on pocket-corpus, {TASKS[1]}")
    assert 0 <= first.low <= first.value <= first.high
    assert (first.n, len(verdict.tested)) == (n, 1 + 6)
    assert ("cannot be shown" in first.note) is (n == 48)


def test_a_correlation_that_does_not_vary_is_undecided(tmp_path: Path) -> None:
    nothing = {"pearson": None, "low": None, "high": None, "n": 48}
    rows: dict[str, dict[str, object]] = {task: {"correlations": {task: nothing}} for task in TASKS}
    verdict = plant(tmp_path, rows).judge("LO8")
    assert verdict.word == "undecided"
