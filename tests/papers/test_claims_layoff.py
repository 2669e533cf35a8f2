"""The claims of Why Can You Lay Off Heads? on planted curves, drift and losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from headcount.changes.correlation import correlate
from headcount.papers.claims import Word
from headcount.papers.claims_layoff import area, areas, curves, last_of, needed_for
from headcount.studies.plan import Cell
from papers.pocket_study import PocketStudy, cut, trained

WOBBLE = (-0.004, 0.0, 0.004)
TASKS = ("pocket-acceptability", "pocket-sentiment", "pocket-entailment")
Kept = Callable[[Cell], float]


def fill(study: PocketStudy, group: str, kept: Kept, wide: float = 1.0, heads: int = 48) -> None:
    """`kept` of a run is the share of the score that its cut keeps."""

    def record(cell: Cell) -> dict[str, object]:
        share = kept(cell) + wide * WOBBLE[cell.run.seed]
        gone = round(heads * cell.axes["ratio"])
        return cut(0.8 * share, 0.8, gone, heads)

    study.fill(group, record)


def at_half(by_norm: Mapping[str, float], **tasks: float) -> Kept:
    def kept(cell: Cell) -> float:
        short = str(cell.run.task).removeprefix("pocket-")
        value = tasks.get(short, by_norm[cell.axes["normalize"]])
        return value if cell.axes["ratio"] == 0.5 else 0.1

    return kept


@pytest.mark.parametrize(
    ("share", "wide", "word"),
    [(0.95, 1.0, "holds"), (0.8, 1.0, "does not hold"), (0.91, 5.0, "undecided")],
)
def test_half_the_heads_keep_what_was_planted(
    tmp_path: Path, share: float, wide: float, word: Word
) -> None:
    study = PocketStudy(tmp_path, "curve")
    fill(study, "curve", at_half({"l1": share, "none": 0.5, "l2": 0.99}), wide)
    verdict = study.judge("LO1")
    first = verdict.tested[0]
    assert verdict.word == word
    assert first.value == pytest.approx(share)
    assert (first.seeds, first.n, first.of) == (3, 1500, "rows scored of 3 tasks")
    assert [row.value for row in verdict.tested[-2:]] == pytest.approx([0.5, 0.99])
    assert len(verdict.tested) == 1 + 3 + 2


def test_tasks_and_the_other_reading_have_lines_of_their_own(tmp_path: Path) -> None:
    study = PocketStudy(tmp_path, "curve")
    fill(study, "curve", at_half({"l1": 0.97, "none": 0.5, "l2": 0.5}, sentiment=0.91))
    study.copy("curve", "curve-again", ratio=0.5, normalize="l1")
    fill(study, "curve-again", lambda _: 0.7)
    verdict = study.judge("LO1")
    by_task = {task: row for task in TASKS for row in verdict.tested[1:4] if task in row.what}
    assert verdict.tested[0].value == pytest.approx((0.97 + 0.91 + 0.97) / 3)
    assert by_task["pocket-entailment"].verdict == "holds"
    assert by_task["pocket-sentiment"].value == pytest.approx(0.91)
    again = [row for row in verdict.tested if "measured again" in row.what]
    assert {row.verdict for row in again} == {"does not hold"}
    assert len(again) == 4


def line(slope: float) -> Kept:
    return lambda cell: 1 - slope * cell.axes["ratio"]


@pytest.mark.parametrize(
    ("unshared", "shared", "wide", "word"),
    [(0.2, 0.9, 1.0, "holds"), (0.9, 0.2, 1.0, "does not hold"), (0.5, 0.51, 1.0, "undecided")],
)
def test_shared_layers_lose_as_planted(
    tmp_path: Path, unshared: float, shared: float, wide: float, word: Word
) -> None:
    study = PocketStudy(tmp_path, "curve", "shared-curve", "words", "shared-words")
    fill(study, "curve", line(unshared), wide)
    fill(study, "words", line(unshared), wide)
    fill(study, "shared-curve", line(shared), -wide, heads=40)
    fill(study, "shared-words", line(shared), -wide, heads=40)
    verdict = study.judge("LO2")
    assert [row.verdict for row in verdict.tested] == [word, word]
    assert verdict.tested[0].what.endswith(
        "pocket-acceptability (shared-curve)"
    )  # the task that both have
    assert verdict.tested[1].what.endswith("pocket-corpus (shared-words)")
    assert "48 heads against 40" in verdict.tested[0].note
    to = 43 / 48  # straight lines but for what is rounded to whole heads
    assert verdict.tested[0].value == pytest.approx((shared - unshared) * to / 2, abs=0.02)


def test_shared_layers_are_tested_on_words_alone_where_no_task_is_planned(tmp_path: Path) -> None:
    study = PocketStudy(tmp_path, "words", "shared-words")
    fill(study, "words", line(0.9))
    fill(study, "shared-words", line(0.5), heads=40)
    study.copy("words", "unshared-words")
    assert study.judge("LO2").word == "not run"
    fill(study, "unshared-words", line(0.2))
    (row,) = study.judge("LO2").tested
    assert row.verdict == "holds"  # against the model that was trained alike, not the other
    assert row.what.endswith("pocket-corpus (shared-words)")


def test_shared_layers_wait_for_the_tasks_that_are_planned(tmp_path: Path) -> None:
    study = PocketStudy(tmp_path, "curve", "shared-curve", "words", "shared-words")
    for group in ("curve", "words", "shared-words"):
        fill(study, group, line(0.5))
    assert study.judge("LO2").word == "not run"


@pytest.mark.parametrize(
    ("slopes", "word", "parts"),
    [
        ({"l1": 0.2, "l2": 0.5, "none": 0.9}, "holds", ["holds", "holds"]),
        ({"l1": 0.5, "l2": 0.2, "none": 0.9}, "does not hold", ["does not hold", "holds"]),
        (
            {"l1": 0.5, "l2": 0.5, "none": 0.5},
            "does not hold",
            ["does not hold", "does not hold"],
        ),  # the same
    ],
)
def test_norms_come_out_as_planted(
    tmp_path: Path, slopes: dict[str, float], word: Word, parts: list[Word]
) -> None:
    study = PocketStudy(tmp_path, "curve")
    fill(study, "curve", lambda cell: line(slopes[cell.axes["normalize"]])(cell))
    verdict = study.judge("LO3")
    assert verdict.word == word
    assert [row.verdict for row in verdict.tested[1:3]] == parts
    least = min(slopes["l2"], slopes["none"]) - slopes["l1"]
    assert verdict.tested[0].value == pytest.approx(least * 43 / 48 / 2, abs=0.01)
    assert len(verdict.tested) == 1 + 2 + 6


def test_norms_that_seeds_do_not_agree_on_are_undecided(tmp_path: Path) -> None:
    study = PocketStudy(tmp_path, "curve")

    def kept(cell: Cell) -> float:
        apart = 0.1 * (cell.run.seed - 0.9) if cell.axes["normalize"] == "l1" else 0.0
        return line(0.5)(cell) + apart

    fill(study, "curve", kept)
    assert study.judge("LO3").word == "undecided"


@pytest.mark.parametrize(
    ("slope", "wide", "word"),
    [(0.3, 1.0, "holds"), (1.0, 1.0, "does not hold"), (0.5, 5.0, "undecided")],
)
def test_words_need_the_heads_that_were_planted(
    tmp_path: Path, slope: float, wide: float, word: Word
) -> None:
    study = PocketStudy(tmp_path, "words")
    fill(study, "words", line(slope), wide)
    verdict = study.judge("LO5")
    assert verdict.word == word
    assert verdict.tested[0].value == pytest.approx(1 - 0.25 / slope, abs=0.02)
    assert verdict.tested[1].value == pytest.approx(1 - slope / 2)
    assert verdict.tested[1].verdict == word


def test_the_heads_needed_are_those_before_the_first_fall() -> None:
    back = [(0.0, 1.0), (0.3, 0.5), (0.6, 0.9)]
    assert needed_for(back, 0.75) == pytest.approx(1 - 0.15)
    assert needed_for([(0.0, 1.0), (0.9, 0.8)], 0.75) == pytest.approx(0.1)
    assert needed_for([(0.0, 1.0), (0.4, 0.75), (0.8, 0.5)], 0.75) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("shares", "wide", "word", "value"),
    [
        ((1.0, 0.995), 1.0, "holds", 1.0),
        ((1.0, 0.9), 1.0, "does not hold", 0.5),
        ((1.0, 0.985), 3.0, "undecided", 1.0),
    ],
)
def test_frozen_layers_cost_as_planted(
    tmp_path: Path, shares: tuple[float, float], wide: float, word: Word, value: float
) -> None:
    study = PocketStudy(tmp_path, "tuned", "frozen")
    of = dict(zip(("pocket-acceptability", "pocket-entailment"), shares, strict=True))
    study.fill("tuned", lambda cell: trained(0.7 + 0.1 * cell.run.seed))

    def frozen(cell: Cell) -> dict[str, object]:
        share = of[str(cell.run.task)] + wide * WOBBLE[cell.run.seed]
        return trained((0.7 + 0.1 * cell.run.seed) * share)

    study.fill("frozen", frozen)
    verdict = study.judge("LO7")
    assert (verdict.word, verdict.tested[0].value) == (word, value)
    assert [row.value for row in verdict.tested[1:3]] == pytest.approx(list(shares))
    assert verdict.tested[-1].value == pytest.approx(sum(shares) / 2)
    assert "the lowest 1 layers" in verdict.tested[0].note


def test_curves_start_with_all_heads_and_go_by_heads_that_went(tmp_path: Path) -> None:
    study = PocketStudy(tmp_path, "words")
    study.fill("words", lambda cell: cut(0.4, gone=round(48 * cell.axes["ratio"])))
    lines = curves(study.finished, "words")
    assert list(lines) == ["pocket-corpus"]
    assert sorted(lines["pocket-corpus"]) == [0, 1, 2]
    curve = lines["pocket-corpus"][0]
    assert curve[0] == (0.0, 1.0)
    assert curve[-1] == pytest.approx((43 / 48, 0.5))
    assert last_of(lines) == pytest.approx(43 / 48)


def test_an_area_is_a_mean_height_up_to_a_share() -> None:
    falling = [(0.0, 1.0), (0.4, 0.8), (0.8, 0.0)]
    plain = (0.4 * 0.9 + 0.2 * (0.8 + 0.4) / 2) / 0.6
    assert area(falling, 0.6) == pytest.approx(plain)
    assert area(falling, 0.8) == pytest.approx((0.4 * 0.9 + 0.4 * 0.4) / 0.8)
    assert areas({"a": {0: falling}}, 0.8) == {"a": {0: pytest.approx(0.52 / 0.8)}}


def test_a_score_of_nothing_has_no_share(tmp_path: Path) -> None:
    study = PocketStudy(tmp_path, "words")
    study.fill("words", lambda cell: cut(0.4, -0.1 if cell.run.seed else 0.8))
    assert list(curves(study.finished, "words")["pocket-corpus"]) == [0]
    study.fill("words", lambda _: cut(0.4, 0.0))
    assert curves(study.finished, "words") == {}


DRIFT_TASKS = ("pocket-acceptability", "pocket-entailment", "pocket-similarity")


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
        for task, count in zip(DRIFT_TASKS, both, strict=True)
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
    rows = {task: {"recall": [at(0, 0)]} for task in DRIFT_TASKS}
    assert plant(tmp_path / "a", rows).judge("LO4").word == "not run"
    rows[DRIFT_TASKS[0]] = {"recall": [at(9, 10)]}
    assert plant(tmp_path / "b", rows).judge("LO4").word == "undecided"
    rows[DRIFT_TASKS[0]] = {"recall": [at(2, 10)]}
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
    verdict = plant(tmp_path, {task: layers(values) for task in DRIFT_TASKS}).judge("LO6")
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
    rows = {
        DRIFT_TASKS[0]: layers(DOWN),
        DRIFT_TASKS[1]: layers(DOWN),
        DRIFT_TASKS[2]: layers(steep),
    }
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
        task: {"correlations": {task: little, "pocket-corpus": little}} for task in DRIFT_TASKS
    }
    rows[DRIFT_TASKS[1]] = {
        "correlations": {DRIFT_TASKS[1]: little, "pocket-corpus": correlated(r, n)}
    }
    verdict = plant(tmp_path, rows).judge("LO8")
    first = verdict.tested[0]
    assert verdict.word == word
    assert first.value == pytest.approx(abs(r))
    assert first.what.endswith(f"on pocket-corpus, {DRIFT_TASKS[1]}")
    assert 0 <= first.low <= first.value <= first.high
    assert (first.n, len(verdict.tested)) == (n, 1 + 6)
    assert ("cannot be shown" in first.note) is (n == 48)


def test_a_correlation_that_does_not_vary_is_undecided(tmp_path: Path) -> None:
    nothing = {"pearson": None, "low": None, "high": None, "n": 48}
    rows: dict[str, dict[str, object]] = {
        task: {"correlations": {task: nothing}} for task in DRIFT_TASKS
    }
    verdict = plant(tmp_path, rows).judge("LO8")
    assert verdict.word == "undecided"
