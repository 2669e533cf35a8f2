"""Curves with a planted loss: LO1, LO2, LO3, LO5 and LO7."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headcount.papers.claims import Word
from headcount.papers.claims_layoff import needed_for
from headcount.studies.plan import Cell
from papers.made import Made, cut, trained

WOBBLE = (-0.004, 0.0, 0.004)
TASKS = ("pocket-acceptability", "pocket-sentiment", "pocket-entailment")
Kept = Callable[[Cell], float]


def fill(made: Made, group: str, kept: Kept, wide: float = 1.0, heads: int = 48) -> None:
    """`kept` of a run is the share of the score that its cut keeps."""

    def record(cell: Cell) -> dict[str, object]:
        share = kept(cell) + wide * WOBBLE[cell.run.seed]
        gone = round(heads * cell.axes["ratio"])
        return cut(0.8 * share, 0.8, gone, heads)

    made.fill(group, record)


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
    made = Made(tmp_path, "curve")
    fill(made, "curve", at_half({"l1": share, "none": 0.5, "l2": 0.99}), wide)
    found = made.judge("LO1")
    first = found.tested[0]
    assert found.word == word
    assert first.value == pytest.approx(share)
    assert (first.seeds, first.n, first.of) == (3, 1500, "rows scored of 3 tasks")
    assert [row.value for row in found.tested[-2:]] == pytest.approx([0.5, 0.99])
    assert len(found.tested) == 1 + 3 + 2


def test_tasks_and_the_other_reading_have_lines_of_their_own(tmp_path: Path) -> None:
    made = Made(tmp_path, "curve")
    fill(made, "curve", at_half({"l1": 0.97, "none": 0.5, "l2": 0.5}, sentiment=0.91))
    made.copy("curve", "curve-again", ratio=0.5, normalize="l1")
    fill(made, "curve-again", lambda _: 0.7)
    found = made.judge("LO1")
    by_task = {task: row for task in TASKS for row in found.tested[1:4] if task in row.what}
    assert found.tested[0].value == pytest.approx((0.97 + 0.91 + 0.97) / 3)
    assert by_task["pocket-entailment"].verdict == "holds"
    assert by_task["pocket-sentiment"].value == pytest.approx(0.91)
    again = [row for row in found.tested if "measured again" in row.what]
    assert {row.verdict for row in again} == {"does not hold"}
    assert len(again) == 4


def line(slope: float) -> Kept:
    return lambda cell: 1 - slope * cell.axes["ratio"]


@pytest.mark.parametrize(
    ("own", "shared", "wide", "word"),
    [(0.2, 0.9, 1.0, "holds"), (0.9, 0.2, 1.0, "does not hold"), (0.5, 0.51, 1.0, "undecided")],
)
def test_shared_layers_lose_as_planted(
    tmp_path: Path, own: float, shared: float, wide: float, word: Word
) -> None:
    made = Made(tmp_path, "curve", "shared-curve", "words", "shared-words")
    fill(made, "curve", line(own), wide)
    fill(made, "words", line(own), wide)
    fill(made, "shared-curve", line(shared), -wide, heads=40)
    fill(made, "shared-words", line(shared), -wide, heads=40)
    found = made.judge("LO2")
    assert [row.verdict for row in found.tested] == [word, word]
    assert found.tested[0].what.endswith(
        "pocket-acceptability (shared-curve)"
    )  # the task that both have
    assert found.tested[1].what.endswith("pocket-corpus (shared-words)")
    assert "48 heads against 40" in found.tested[0].note
    to = 43 / 48  # straight lines but for what is rounded to whole heads
    assert found.tested[0].value == pytest.approx((shared - own) * to / 2, abs=0.02)


def test_shared_layers_are_tested_on_words_alone_where_no_task_is_planned(tmp_path: Path) -> None:
    made = Made(tmp_path, "words", "shared-words")
    fill(made, "words", line(0.9))
    fill(made, "shared-words", line(0.5), heads=40)
    made.copy("words", "unshared-words")
    assert made.judge("LO2").word == "not run"
    fill(made, "unshared-words", line(0.2))
    (row,) = made.judge("LO2").tested
    assert row.verdict == "holds"  # against the model that was trained alike, not the other
    assert row.what.endswith("pocket-corpus (shared-words)")


def test_shared_layers_wait_for_the_tasks_that_are_planned(tmp_path: Path) -> None:
    made = Made(tmp_path, "curve", "shared-curve", "words", "shared-words")
    for group in ("curve", "words", "shared-words"):
        fill(made, group, line(0.5))
    assert made.judge("LO2").word == "not run"


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
    made = Made(tmp_path, "curve")
    fill(made, "curve", lambda cell: line(slopes[cell.axes["normalize"]])(cell))
    found = made.judge("LO3")
    assert found.word == word
    assert [row.verdict for row in found.tested[1:3]] == parts
    least = min(slopes["l2"], slopes["none"]) - slopes["l1"]
    assert found.tested[0].value == pytest.approx(least * 43 / 48 / 2, abs=0.01)
    assert len(found.tested) == 1 + 2 + 6


def test_norms_that_seeds_do_not_agree_on_are_undecided(tmp_path: Path) -> None:
    made = Made(tmp_path, "curve")

    def kept(cell: Cell) -> float:
        apart = 0.1 * (cell.run.seed - 0.9) if cell.axes["normalize"] == "l1" else 0.0
        return line(0.5)(cell) + apart

    fill(made, "curve", kept)
    assert made.judge("LO3").word == "undecided"


@pytest.mark.parametrize(
    ("slope", "wide", "word"),
    [(0.3, 1.0, "holds"), (1.0, 1.0, "does not hold"), (0.5, 5.0, "undecided")],
)
def test_words_need_the_heads_that_were_planted(
    tmp_path: Path, slope: float, wide: float, word: Word
) -> None:
    made = Made(tmp_path, "words")
    fill(made, "words", line(slope), wide)
    found = made.judge("LO5")
    assert found.word == word
    assert found.tested[0].value == pytest.approx(1 - 0.25 / slope, abs=0.02)
    assert found.tested[1].value == pytest.approx(1 - slope / 2)
    assert found.tested[1].verdict == word


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
    made = Made(tmp_path, "tuned", "frozen")
    of = dict(zip(("pocket-acceptability", "pocket-entailment"), shares, strict=True))
    made.fill("tuned", lambda cell: trained(0.7 + 0.1 * cell.run.seed))

    def frozen(cell: Cell) -> dict[str, object]:
        share = of[str(cell.run.task)] + wide * WOBBLE[cell.run.seed]
        return trained((0.7 + 0.1 * cell.run.seed) * share)

    made.fill("frozen", frozen)
    found = made.judge("LO7")
    assert (found.word, found.tested[0].value) == (word, value)
    assert [row.value for row in found.tested[1:3]] == pytest.approx(list(shares))
    assert found.tested[-1].value == pytest.approx(sum(shares) / 2)
    assert "the lowest 1 layers" in found.tested[0].note
