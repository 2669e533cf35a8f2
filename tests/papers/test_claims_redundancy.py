"""Matrices with a planted agreement: RA1, RA2, RA5, RA6 and RA7 come out as planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headcount.heads import Layout
from headcount.likeness.distances import SENTENCE_BASED, TOKEN_BASED
from headcount.papers.claims import Verdict, Word
from headcount.papers.claims_redundancy import KINDS, SEVEN
from headcount.runs.kinds.roles import RolesOptions
from headcount.runs.run import Run
from headcount.studies.plan import Cell
from papers.pocket_study import PocketStudy, symmetric

HEADS = 20
LAYOUT = Layout.of(encoder=[5] * 4)
GROUPS = ("near", "near-random", "near-tuned")


def noise(*seed: object) -> np.ndarray:
    """Numbers that only these words bring about."""
    return np.random.default_rng([ord(c) for c in str(seed)]).standard_normal((HEADS, HEADS))


Plant = Callable[[str, str, str], np.ndarray]
"""(group, inputs, distance) -> what a matrix is study of, about as wide as 1."""


def plant(folder: Path, value: Plant, *groups: str) -> PocketStudy:
    study = PocketStudy(folder, *GROUPS)
    for group in groups:

        def measured(cell: Cell, group: str = group) -> dict[str, np.ndarray]:
            inputs = str(cell.run.task)
            return {d: symmetric(0.5 + 0.1 * value(group, inputs, d)) for d in SEVEN}

        study.fill(group, matrices=measured, layout=LAYOUT)
    return study


def beside_near(study: PocketStudy, name: str) -> None:
    """One more group of the tasks that `near` has, to be filled."""
    roles = Run("roles", "x", seed=9, options=RolesOptions())
    more = [
        Cell(
            group=name,
            axes=cell.axes,
            run=roles if name == "looks" else replace(cell.run, seed=9),
        )
        for cell in study.cells("near")
    ]
    study.plan = replace(study.plan, cells=[*study.plan.cells, *more])


def alike(share: float, *what: Callable[[str, str, str], object]) -> Plant:
    """One matrix for all, and noise of a share for whatever differs in this."""
    return lambda group, inputs, d: (
        (1 - share) ** 0.5 * noise("all")
        + share**0.5 * noise(*(str(part(group, inputs, d)) for part in what))
    )


def by_distance(group: str, inputs: str, d: str) -> str:
    return f"{d} {inputs} {group}"


@pytest.mark.parametrize(("code", "names"), [("RA1", TOKEN_BASED), ("RA2", SENTENCE_BASED)])
@pytest.mark.parametrize(
    ("share", "word"), [(0.02, "holds"), (0.2, "undecided"), (0.8, "does not hold")]
)
def test_distances_agree_as_planted(
    tmp_path: Path, code: str, names: tuple[str, ...], share: float, word: Word
) -> None:
    def value(group: str, inputs: str, d: str) -> np.ndarray:
        if d in names:
            return alike(share, by_distance)(group, inputs, d)
        return noise(group, inputs, d)  # the other kind of distances is not asked

    verdict = plant(tmp_path, value, "near", "near-random").judge(code)
    assert verdict.word == word
    assert verdict.tested[0].n == HEADS
    pairs = len(names) * (len(names) - 1) // 2 * 6
    assert f"of {pairs} correlations" in verdict.tested[0].note
    assert len(verdict.tested) == 1 + 6 + (code == "RA1")


def test_heads_that_look_everywhere_are_left_out_in_lines_of_their_own(tmp_path: Path) -> None:
    diffuse = np.arange(HEADS) % 4 == 1  # the quarter of which corr makes noise

    def value(group: str, inputs: str, d: str) -> np.ndarray:
        plain = alike(0.02, by_distance)(group, inputs, d)
        return (
            np.where(diffuse | diffuse[:, None], 3 * noise(inputs), plain) if d == "corr" else plain
        )

    study = plant(tmp_path, value, "near", "near-random")
    beside_near(study, "looks")
    assert study.judge("RA1").word == "does not hold"
    assert not any("spread" in row.what for row in study.judge("RA1").tested)  # not measured yet
    spread = np.where(diffuse, 0.9, 0.5) - np.arange(HEADS) / 1000
    special = np.arange(HEADS) // 2 % 2 / 10 + np.arange(HEADS) / 1000  # diffuse or not, as much
    looks = {"entropy_share": spread, "first": special, "separator": special}
    quantities = {name: {"values": values.tolist()} for name, values in looks.items()}
    study.fill("looks", lambda _: {"quantities": quantities})
    verdict = study.judge("RA1")
    rows = [row for row in verdict.tested if "equal attention" in row.note]
    quarter, least, most, peaked, flat, *held = rows
    assert (verdict.word, quarter.verdict, least.verdict, most.verdict) == (
        "does not hold", "holds", "holds", "does not hold"
    )  # fmt: skip
    assert (quarter.n, least.n, most.n) == (15, 10, 10)
    assert "entropy of 48 to 50 % of" in quarter.note
    assert (peaked.verdict, flat.verdict) == (
        "holds",
        "does not hold",
    )  # no diffuse head has a peak
    less, more, elsewhere, special = held
    assert (less.verdict, more.verdict) == ("holds", "does not hold")
    assert max(elsewhere.value, special.value) < 0.7 < less.value


def test_short_inputs_have_lines_of_their_own_and_decide_nothing(tmp_path: Path) -> None:
    study = plant(tmp_path, alike(0.8, by_distance), "near", "near-random")
    beside_near(study, "near-short")
    same = dict.fromkeys(SEVEN, symmetric(0.5 + 0.1 * noise("short")))
    study.fill("near-short", matrices=lambda _: same, layout=LAYOUT)
    for code in ("RA1", "RA2", "RA6"):
        verdict = study.judge(code)
        (row,) = (row for row in verdict.tested if "cut to 12 tokens" in row.what)
        assert (verdict.word, row.verdict) == ("does not hold", "holds")
        assert row.value == pytest.approx(1)


def test_bc_alone_may_disagree_and_a_line_leaves_it_out(tmp_path: Path) -> None:
    def value(group: str, inputs: str, d: str) -> np.ndarray:
        return noise(inputs) if d == "bc" else alike(0.02, by_distance)(group, inputs, d)

    verdict = plant(tmp_path, value, "near", "near-random").judge("RA1")
    assert verdict.word == "does not hold"
    assert verdict.tested[-1].verdict == "holds"
    assert "whichever way bc is read" in verdict.tested[-1].note


def test_one_input_decides_and_fine_tuned_models_have_a_line(tmp_path: Path) -> None:
    def value(group: str, inputs: str, d: str) -> np.ndarray:
        apart = inputs == "pocket-sentiment" or group == "near-tuned"
        return alike(0.8 if apart else 0.02, by_distance)(group, inputs, d)

    verdict = plant(tmp_path, value, *GROUPS).judge("RA1")
    words = {row.what.rpartition("bc, ")[2]: row.verdict for row in verdict.tested}
    assert verdict.word == "does not hold"
    assert words["pocket-sentiment"] == words["fine-tuned, all inputs"] == "does not hold"
    assert words["pocket-entailment"] == words["random tokens"] == "holds"


def tuned_by(share: float, shift: float = 0.0) -> Plant:
    def value(group: str, inputs: str, d: str) -> np.ndarray:
        base = noise(inputs, d)
        if group != "near-tuned":
            return base
        return (1 - share) ** 0.5 * base + share**0.5 * noise(inputs, d, "tuned") + shift

    return value


@pytest.mark.parametrize(
    ("value", "word", "parts"),
    [
        (tuned_by(0.02), "holds", ("holds", "holds")),
        (tuned_by(0.1), "undecided", ("undecided", "holds")),
        (tuned_by(0.6), "does not hold", ("does not hold", "does not hold")),
        (
            tuned_by(0.0, 0.8),
            "does not hold",
            ("holds", "does not hold"),
        ),  # alike, but further apart
    ],
)
def test_phases_are_alike_as_planted(
    tmp_path: Path, value: Plant, word: Word, parts: tuple[Word, Word]
) -> None:
    verdict = plant(tmp_path, value, "near", "near-tuned").judge("RA5")
    assert verdict.word == word
    assert f"on r ({parts[0]}) and on the difference ({parts[1]})" in verdict.tested[0].note
    assert verdict.tested[1].verdict == parts[1]
    assert len(verdict.tested) == 3 + 2 * 5


def test_the_mean_difference_is_that_of_all_pairs_of_heads(tmp_path: Path) -> None:
    verdict = plant(tmp_path, tuned_by(0.0, 0.8), "near", "near-tuned").judge("RA5")
    assert verdict.tested[1].value == pytest.approx(0.08, abs=0.002)  # some are cut off at 1


def test_a_slower_training_has_lines_of_its_own_and_decides_nothing(tmp_path: Path) -> None:
    study = plant(tmp_path, tuned_by(0.8, 0.0), "near", "near-tuned")
    beside_near(study, "near-slow")
    assert len(study.judge("RA5").tested) == 3 + 2 * 5

    def unmoved(cell: Cell) -> dict[str, np.ndarray]:
        value = tuned_by(0.8, 0.0)
        return {d: symmetric(0.5 + 0.1 * value("near", str(cell.run.task), d)) for d in SEVEN}

    study.fill("near-slow", matrices=unmoved, layout=LAYOUT)
    verdict = study.judge("RA5")
    slow = [row for row in verdict.tested if "a fifth of the learning rate" in row.what]
    assert verdict.word == "does not hold"
    assert [row.verdict for row in slow] == ["holds"] * 5
    assert {round(row.value, 6) for row in slow} == {1}


def by_inputs(group: str, inputs: str, d: str) -> str:
    return f"{inputs} {d} {group}"


@pytest.mark.parametrize(
    ("share", "word"), [(0.02, "holds"), (0.14, "undecided"), (0.8, "does not hold")]
)
def test_inputs_agree_as_planted(tmp_path: Path, share: float, word: Word) -> None:
    verdict = plant(tmp_path, alike(share, by_inputs), "near", "near-random").judge("RA6")
    assert verdict.word == word
    assert f"of {15 * 7} correlations" in verdict.tested[0].note
    assert len(verdict.tested) == 3 + 7


def test_random_tokens_alone_may_be_unlike(tmp_path: Path) -> None:
    def value(group: str, inputs: str, d: str) -> np.ndarray:
        return alike(0.8 if group == "near-random" else 0.02, by_inputs)(group, inputs, d)

    verdict = plant(tmp_path, value, *GROUPS).judge("RA6")
    words = [row.verdict for row in verdict.tested]
    assert words[:4] == ["does not hold", "holds", "does not hold", "holds"]


def by_kind(group: str, inputs: str, d: str) -> str:
    return f"{KINDS[inputs]} {d}"


def against_kind(group: str, inputs: str, d: str) -> str:
    """Tasks that are alike are of different kinds."""
    other = {"pocket-acceptability": 0, "pocket-paraphrase": 0, "pocket-sentiment": 1}
    return f"{other.get(inputs, 1 if inputs == 'pocket-similarity' else 2)} {d}"


def in_kinds(of: Callable[[str, str, str], str], share: float) -> Plant:
    plain = alike(share, of)
    return lambda group, inputs, d: plain(group, inputs, d) + 0.3 * noise(group, inputs, d)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (in_kinds(by_kind, 0.4), "holds"),
        (in_kinds(against_kind, 0.4), "does not hold"),
        (in_kinds(by_inputs, 0.4), "undecided"),
    ],
)
def test_kinds_come_out_as_planted(tmp_path: Path, value: Plant, word: Word) -> None:
    verdict = plant(tmp_path, value, "near").judge("RA7")
    assert verdict.word == word
    assert "2 within kinds, 8 between" in verdict.tested[0].note
    assert (verdict.tested[0].n, verdict.tested[0].of) == (10, "pairs of tasks")
    assert len(verdict.tested) == 2 + 7


def chance_of(verdict: Verdict) -> float:
    return float(verdict.tested[0].note.partition(": p ")[2].partition(";")[0])


def test_kinds_given_at_random_are_as_good_as_planted(tmp_path: Path) -> None:
    kinds = plant(tmp_path / "a", in_kinds(by_kind, 0.4), "near").judge("RA7")
    assert chance_of(kinds) == pytest.approx(1 / 15, abs=0.03)  # of 15 ways to pair two and two
    none = plant(tmp_path / "b", in_kinds(against_kind, 0.4), "near").judge("RA7")
    assert chance_of(none) > 0.5


def test_every_task_of_glue_and_of_the_pocket_world_has_its_kind() -> None:
    assert KINDS["cola"] == KINDS["sst2"] == KINDS["pocket-sentiment"] == "one sentence"
    assert KINDS["stsb"] == KINDS["qqp"] == KINDS["pocket-paraphrase"] == "similarity"
    assert KINDS["qnli"] == KINDS["wnli"] == KINDS["pocket-entailment"] == "inference"
    assert len(KINDS) == 14
