"""Zero-shot cuts with a planted loss, and clusterings with planted heads: RA8 and RA9."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headcount.heads import Head, Layout, Mask
from headcount.papers.claims import Word
from headcount.studies.plan import Cell
from papers.pocket_study import PocketStudy, cut, trained

TASKS = ("pocket-acceptability", "pocket-entailment")
WOBBLE = (-0.002, 0.0, 0.002)


def plant(
    folder: Path, losses: dict[str, float], wide: float = 1.0, at_85: float | None = None
) -> PocketStudy:
    study = PocketStudy(folder, "tuned", "zero-shot", "random")
    study.fill("tuned", lambda _: trained(0.8))

    def zero_shot(cell: Cell) -> dict[str, object]:
        loss = losses[str(cell.run.task)]
        if at_85 is not None and cell.axes["ratio"] == 0.85:
            loss = at_85
        return cut(0.8 * (1 - loss - wide * WOBBLE[cell.run.seed]))

    study.fill("zero-shot", zero_shot)
    return study


@pytest.mark.parametrize(
    ("losses", "wide", "word", "share"),
    [
        ((0.01, 0.03), 1.0, "holds", 1.0),
        ((0.01, 0.2), 1.0, "does not hold", 0.5),  # one of two is not most
        ((0.3, 0.2), 1.0, "does not hold", 0.0),
        ((0.01, 0.045), 20.0, "undecided", 1.0),
    ],
)
def test_zero_shot_cuts_lose_as_planted(
    tmp_path: Path, losses: tuple[float, float], wide: float, word: Word, share: float
) -> None:
    verdict = plant(tmp_path, dict(zip(TASKS, losses, strict=True)), wide).judge("RA8")
    first = verdict.tested[0]
    assert (verdict.word, first.value) == (word, share)
    assert (first.n, first.of, first.seeds) == (2, "tasks", 3)
    drops = [row.value for row in verdict.tested if "drop with 75 %" in row.what]
    assert drops == pytest.approx(list(losses))


def test_each_of_both_ratios_has_its_line(tmp_path: Path) -> None:
    verdict = plant(tmp_path, dict.fromkeys(TASKS, 0.01), at_85=0.4).judge("RA8")
    assert [row.verdict for row in verdict.tested[:2]] == ["holds", "does not hold"]
    assert ["75 %" in verdict.tested[0].what, "85 %" in verdict.tested[1].what] == [True, True]
    assert len(verdict.tested) == 2 + 4
    assert verdict.tested[2].note == ""  # nothing to compare with


def test_random_heads_stand_beside_and_the_other_reading_is_told_apart(tmp_path: Path) -> None:
    study = plant(tmp_path, dict.fromkeys(TASKS, 0.01))
    study.fill("random", lambda cell: cut(0.8 * (1 - cell.axes["ratio"] / 2)))
    study.copy("zero-shot", "zero-shot-one")
    study.fill("zero-shot-one", lambda _: cut(0.4))
    verdict = study.judge("RA8")
    assert verdict.tested[2].note == "random heads lose 0.350 at 70 %, 0.450 at 90 %"
    other = [row for row in verdict.tested if "clusters of one distance" in row.what]
    assert verdict.word == "holds"
    assert {row.verdict for row in other} == {"does not hold"}


LAYOUT = Layout.of(encoder=[4] * 6)


def masks(folder: Path, gone: dict[int, int], late: int = 0, spared: bool = True) -> PocketStudy:
    """Layer -> heads that go; the last `late` clusterings spare the lower layers."""
    study = PocketStudy(folder, "chance")

    def record(cell: Cell) -> dict[str, object]:
        seed = cell.run.seed
        dropped = []
        for layer, count in gone.items():
            few = 0 if seed >= 10 - late and layer < 2 else count
            first = 0 if spared or layer not in (2, 3) else seed % 4
            heads = [(first + index) % 4 for index in range(few)]
            dropped += [Head("encoder", layer, head) for head in heads]
        return {"mask": Mask.full(LAYOUT).drop(dropped).to_json()}

    study.fill("chance", record)
    return study


ENDS = {0: 3, 1: 3, 2: 1, 3: 1, 4: 2, 5: 2}


@pytest.mark.parametrize(
    ("gone", "late", "spared", "word", "never"),
    [
        (ENDS, 0, True, "holds", 6),
        (ENDS, 0, False, "does not hold", 0),  # each middle head goes once
        ({0: 1, 1: 1, 2: 3, 3: 3, 4: 3, 5: 3}, 0, True, "does not hold", 2),
        (ENDS, 7, True, "undecided", 6),
    ],
)
def test_heads_go_from_the_thirds_that_were_planted(
    tmp_path: Path, gone: dict[int, int], late: int, spared: bool, word: Word, never: int
) -> None:
    verdict = masks(tmp_path, gone, late, spared).judge("RA9")
    assert verdict.word == word
    count = next(row for row in verdict.tested if "never go" in row.what)
    assert (count.value, count.n, count.seeds) == (never, 8, 10)
    assert len(verdict.tested) == 1 + 2 + 1 + 3 * 2 + 3


def test_heads_that_stay_at_one_ratio_and_by_one_distance_are_counted(tmp_path: Path) -> None:
    study = masks(tmp_path, ENDS, spared=False)
    study.copy("chance", "chance-one")
    of = {"js": ENDS, "dcor": dict.fromkeys(ENDS, 4)}
    cells = [
        replace(cell, axes={**cell.axes, "distances": [list(of)[cell.run.seed % 2]]})
        for cell in study.cells("chance-one")
    ]
    study.plan = replace(study.plan, cells=[*study.cells("chance"), *cells])
    study.fill("chance-one", lambda cell: _gone(of[cell.axes["distances"][0]]))
    verdict = study.judge("RA9")
    never = {row.what.split(", ", 1)[1]: row for row in verdict.tested if "never go" in row.what}
    assert verdict.word == "does not hold"
    assert never["at 25 % alone"].value == 0
    js, dcor = (never[f"at any ratio, clusters of {name} only"] for name in of)
    assert (js.value, js.verdict, js.seeds) == (6, "holds", 5)
    assert (dcor.value, dcor.verdict) == (0, "does not hold")


def test_the_shares_of_thirds_are_means_over_clusterings(tmp_path: Path) -> None:
    verdict = masks(tmp_path, ENDS, 5).judge("RA9")
    lower, upper = verdict.tested[1:3]
    assert "lower third" in lower.what
    assert lower.value == pytest.approx(0.75 / 2 - 0.25)
    assert upper.value == pytest.approx(0.5 - 0.25)
    assert verdict.tested[0].value == min(lower.value, upper.value)


def test_ratios_outside_the_papers_range_do_not_decide(tmp_path: Path) -> None:
    study = masks(tmp_path, ENDS)
    cells = [
        replace(cell, axes={**cell.axes, "ratio": 0.95}) if cell.axes["ratio"] == 0.5 else cell
        for cell in study.cells("chance")
    ]
    study.plan = replace(study.plan, cells=cells)
    every = {head for head in LAYOUT if head.layer > 1}
    study.fill("chance", lambda cell: _all_gone(every) if cell.axes["ratio"] == 0.95 else _kept())
    verdict = study.judge("RA9")
    assert verdict.tested[0].verdict == "holds"
    assert next(row for row in verdict.tested if "never go" in row.what).value == 6
    assert (
        next(row for row in verdict.tested if "lower" in row.what and "95 %" in row.what).value < 0
    )


def _all_gone(heads: set[Head]) -> dict[str, object]:
    return {"mask": Mask.full(LAYOUT).drop(sorted(heads)).to_json()}


def _kept() -> dict[str, object]:
    return _gone(ENDS)


def _gone(heads: dict[int, int]) -> dict[str, object]:
    return _all_gone(
        {Head("encoder", layer, index) for layer, n in heads.items() for index in range(n)}
    )
