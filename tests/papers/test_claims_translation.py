"""Claims on translators of the weak-link paper, on runs whose answer is planted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from papers.planted import SEEDS, Planted, prune, verdict

NOISE = (-0.02, 0.0, 0.02)
LEVELS = ("888444", "777332", "666222", "555211", "333111")


def translated(drops: dict[float, float], noise: float = 1.0) -> Planted:
    finished = Planted()
    for seed in SEEDS:
        finished.add("mt-full", {"method": "all-heads", "seed": seed}, prune(29.0, metric="bleu"))
        for ratio, drop in drops.items():
            score = 29.0 - drop + noise * NOISE[seed]
            axes = {"method": "random", "ratio": ratio, "seed": seed}
            finished.add("mt-random", axes, prune(score, metric="bleu"))
    return finished


@pytest.mark.parametrize(
    ("drops", "noise", "word", "first_ratio"),
    [
        ({0.25: 0.0, 0.6: 0.05, 0.75: 0.5}, 1.0, "holds", "60 %"),
        ({0.25: 0.0, 0.6: 0.5, 0.75: 0.5}, 1.0, "does not hold", "60 %"),
        ({0.25: 0.0, 0.6: 0.05, 0.75: 1.5}, 1.0, "does not hold", "75 %"),
        ({0.25: 0.0, 0.6: 0.05, 0.75: 0.5}, 9.0, "undecided", "60 %"),
        ({0.25: 0.0, 0.6: 0.05}, 1.0, "not run", "75 %"),
        ({0.25: 0.0, 0.6: 0.5}, 1.0, "does not hold", "60 %"),
    ],
)
def test_lost_at_random(
    drops: dict[float, float], noise: float, word: str, first_ratio: str
) -> None:
    first, *others = verdict("WL1", translated(drops, noise))
    assert first.verdict == word
    assert first_ratio in first.what
    if word == "not run":
        assert first.note == "No run removes 75 % of the heads; tried: 25 %, 60 %."
    else:
        assert first.value == pytest.approx(drops[float(first_ratio[:2]) / 100])
        assert (first.seeds, first.n, first.of) == (3, 500, "rows scored")
    assert "25 %" in others[-1].what
    assert "0.15" in others[-1].what


def test_a_second_pair_of_languages_counts_where_it_was_run() -> None:
    finished = translated({0.6: 0.05, 0.75: 0.5})
    german = translated({0.6: 0.05, 0.75: 1.5})
    for group, cells in german.cells.items():
        for cell in cells:
            finished.add(f"{group}-de", cell.axes, german._records[cell.key])
    first, *others = verdict("WL1", finished)
    assert (first.verdict, first.value) == ("does not hold", pytest.approx(1.5))
    assert "into German" in first.what
    assert [tested.verdict for tested in others] == ["holds"] * 3


def patterned(gap: Callable[[int, int], float], *, alone: bool = False) -> Planted:
    """`gap` of a ratio's place and a seed is what keeping the lower layers adds."""
    finished = Planted()
    for at, text in enumerate(LEVELS):
        up = [int(digit) for digit in text]
        for which in (1, -1):
            kept = {"encoder": up[::which], "cross": up[::-which], "decoder": up[::which]}
            if alone and at == 0 and which == -1:
                continue
            for seed in SEEDS:
                score = 29 - at + (gap(at, seed) if which == 1 else 0.0)
                axes = {"seed": seed, "keep": f"{text} {which}"}
                finished.add("mt-patterns", axes, prune(score, kept=kept, metric="bleu"))
    return finished


def test_patterns_that_differ_by_chance() -> None:
    finished = patterned(lambda at, seed: 0.2 * (-1) ** at + NOISE[seed])
    first, second, *by_ratio = verdict("WL2", finished)
    assert (first.verdict, first.n, first.of, first.seeds) == ("holds", 5, "ratios", 3)
    assert first.value == pytest.approx(0.04)
    assert "not excluded" in first.note
    assert "interval over seeds" in second.what
    assert [tested.verdict for tested in by_ratio] == ["does not hold"] * 5
    assert "25 % removed" in by_ratio[0].what


@pytest.mark.parametrize("sign", [1, -1])
def test_patterns_that_differ(sign: int) -> None:
    first, second, *_ = verdict("WL2", patterned(lambda at, seed: sign * (1 + 0.1 * at)))
    assert (first.verdict, second.verdict) == ("does not hold", "does not hold")
    # kept minus lost, the lower layers of the encoder being those thought important
    assert first.value == pytest.approx(sign * 1.2)


def test_patterns_without_a_mirror_image() -> None:
    first, *_ = verdict("WL2", patterned(lambda at, seed: NOISE[seed], alone=True))
    assert first.n == 4
    assert "left out: 1." in first.note
    finished = Planted()
    finished.add("mt-patterns", {"seed": 0}, prune(29.0, kept={"encoder": [4, 4]}))
    assert verdict("WL2", finished)[0].verdict == "not run"


def starved(penalty: dict[str, float], noise: float = 1.0, ratios: int = 4) -> Planted:
    """Triples whose BLEU is lower by so much for the component that keeps fewest."""
    finished = Planted()
    for at in range(ratios):
        for number, name in enumerate(penalty):
            for seed in SEEDS:
                kept = {stack: [4 - at, 4 - at, 3] for stack in ("encoder", "cross", "decoder")}
                kept[name] = [3 - at, 0, 0]
                if seed == 1:  # heads of a component are drawn: layers differ, the sum does not
                    kept[name] = kept[name][::-1]
                shift = noise * NOISE[(at + number) % 3]
                score = 29.0 - penalty[name] + shift + NOISE[(seed + number) % 3]
                axes = {"seed": seed, "keep": f"{name} {at}"}
                finished.add("mt-components", axes, prune(score, kept=kept, metric="bleu"))
    return finished


def test_no_component_matters() -> None:
    first, *others = verdict("WL3", starved({"encoder": 0.0, "cross": 0.0, "decoder": 0.0}))
    assert [first.verdict, *(tested.verdict for tested in others[:2])] == ["holds"] * 3
    assert (first.n, first.of, first.seeds) == (4, "ratios", 3)
    assert len(others) == 5


def test_one_component_matters() -> None:
    first, *others = verdict("WL3", starved({"encoder": 0.0, "cross": 2.0, "decoder": 0.0}))
    assert first.verdict == "does not hold"
    assert "cross" in first.what
    assert abs(first.value) == pytest.approx(2.0, abs=0.03)
    without = [tested for tested in others if "cross" not in tested.what]
    assert {tested.verdict for tested in without} == {"holds"}
    assert "Holm's p 0.000" in first.note


def test_components_that_were_not_starved_are_said() -> None:
    first, *_ = verdict("WL3", starved({"encoder": 0.0, "cross": 0.0}))
    assert first.verdict == "not run"
    assert "encoder, cross" in first.note


def test_one_ratio_has_no_interval_over_ratios() -> None:
    penalty = {"encoder": 0.0, "cross": 2.0, "decoder": 0.0}
    first, *_ = verdict("WL3", starved(penalty, ratios=1))
    assert first.verdict == "undecided"
    assert "nan" not in first.note
