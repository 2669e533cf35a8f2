"""Claims on BERT of the weak-link paper, on runs whose answer is planted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headcount.pruning.layers import Layers
from headcount.pruning.random import Random
from headcount.runs.kinds.prune import Prune
from headcount.runs.run import Run
from papers.planted import SEEDS, Planted, prune, train, verdict

TASKS = ("cola", "mrpc")
NOISE = (-0.002, 0.0, 0.002)


def at_random(drop: float, noise: float = 1.0, ratios: tuple[float, ...] = (0.3, 0.5)) -> Planted:
    finished = Planted()
    for task in TASKS:
        for seed in SEEDS:
            finished.add("tuned", {"task": task, "seed": seed}, train(0.8))
            for ratio in ratios:
                axes = {"task": task, "method": "random", "ratio": ratio, "seed": seed}
                lost = drop if ratio == 0.5 else 0.5
                score = 0.8 * (1 - lost) + noise * NOISE[seed]
                finished.add("random", axes, prune(score))
    return finished


@pytest.mark.parametrize(
    ("drop", "noise", "word"),
    [(0.002, 1.0, "holds"), (0.05, 1.0, "does not hold"), (0.01, 1.0, "undecided"),
     (0.05, 30.0, "undecided")],
)  # fmt: skip
def test_half_at_random(drop: float, noise: float, word: str) -> None:
    first, *others = verdict("WL4", at_random(drop, noise))
    assert (first.verdict, first.seeds, first.n) == (word, 3, 1000)
    assert first.value == pytest.approx(drop)
    # points of a score of 0.8 are 0.8 of a share of it; the other ratio is told as well
    assert others[0].value == pytest.approx(0.8 * drop)
    assert any("30 %" in tested.what and tested.verdict == "does not hold" for tested in others)


def test_half_at_random_leaves_out_a_task_whose_whole_model_scores_nothing() -> None:
    finished = at_random(0.002)
    for seed in SEEDS:
        finished.add("tuned", {"task": "wnli", "seed": seed}, train(0.0, "matthews"))
        finished.add("random", {"task": "wnli", "ratio": 0.5, "seed": seed}, prune(0.1))
    first, *_ = verdict("WL4", finished)
    assert first.verdict == "holds"
    assert "wnli" in first.note


def test_half_at_random_tells_accuracy_where_the_metric_is_another() -> None:
    finished = Planted()
    for seed in SEEDS:
        full, cut = train(0.5, "matthews", accuracy=0.8), prune(0.4, metric="matthews")
        cut["scores"]["after"]["scores"]["accuracy"] = {"value": 0.79 - 0.01 * seed}
        finished.add("tuned", {"task": "cola", "seed": seed}, full)
        finished.add("random", {"task": "cola", "ratio": 0.5, "seed": seed}, cut)
    values = {tested.what: tested.value for tested in verdict("WL4", finished)}
    assert values["loss in points of accuracy"] == pytest.approx(0.02)


def test_a_ratio_that_is_missing_is_said() -> None:
    first, *others = verdict("WL4", at_random(0.0, ratios=(0.3, 0.7)))
    assert first.verdict == "not run"
    assert "30 %, 70 %" in first.note
    assert not others


def emptied(lost: Mapping[str, float], noise: float = 1.0, layers: int = 12) -> Planted:
    """Runs that lose so much of the whole model's score; the noise differs by cut and seed."""
    finished = Planted()
    for task in TASKS:
        for seed in SEEDS:
            finished.add("tuned", {"task": task, "seed": seed}, train(0.8))
            for at, (name, drop) in enumerate(lost.items()):
                error = noise * NOISE[(seed + at) % 3]
                record = prune(0.8 * (1 - drop) + error, kept={"encoder": [8] * layers})
                finished.add("layers", {"task": task, "seed": seed, "empty": name}, record)
    return finished


@pytest.mark.parametrize(
    ("lost", "word"),
    [
        ({"top:1": 0.02, "bottom:1": 0.02, "top:6": 0.1, "bottom:6": 0.1}, "holds"),
        ({"top:1": 0.02, "bottom:1": 0.08, "top:6": 0.1, "bottom:6": 0.2}, "does not hold"),
        ({"top:1": 0.05, "bottom:6": 0.2}, "not run"),
    ],
)
def test_top_or_bottom(lost: dict[str, float], word: str) -> None:
    first, *others = verdict("WL5", emptied(lost))
    assert first.verdict == word
    if word == "holds":
        assert "not excluded" in first.note
        assert "Layers emptied: 1, 6." in first.note
    if word == "does not hold":
        assert first.value == pytest.approx(0.08)
        assert [round(tested.value, 3) for tested in others] == [0.06, 0.1, 0.08, 0.08]


def test_one_seed_says_nothing_of_a_difference() -> None:
    finished = Planted()
    for task in TASKS:
        finished.add("tuned", {"task": task, "seed": 0}, train(0.8))
        for name in ("top:1", "bottom:1"):
            finished.add("layers", {"task": task, "seed": 0, "empty": name}, prune(0.7))
    assert verdict("WL5", finished)[0].verdict == "undecided"


MIDDLE = {"middle:2": 0.1, "top:1+bottom:1": 0.02, "middle:4": 0.3, "top:2+bottom:2": 0.1}


def test_the_middle_is_worse() -> None:
    first, *others = verdict("WL6", emptied(MIDDLE | {"top:1+bottom:2": 0.9}))
    # 2 numbers of layers × 2 tasks × 3 seeds, all worse: Clopper and Pearson's lower end
    assert (first.verdict, first.value, first.n, first.of) == ("holds", 1.0, 12, "pairs")
    assert first.low == pytest.approx(0.025 ** (1 / 12))
    assert others[0].n == 4
    assert others[1].verdict == "holds"
    assert others[1].value == pytest.approx(-0.14)


def test_the_middle_is_better() -> None:
    swapped = dict(zip(MIDDLE, (0.02, 0.1, 0.1, 0.3), strict=True))
    first, *_ = verdict("WL6", emptied(swapped))
    assert (first.verdict, first.value) == ("does not hold", 0.0)


def test_the_middle_is_one_or_the_other() -> None:
    mixed = dict(zip(MIDDLE, (0.02, 0.1, 0.3, 0.1), strict=True))
    first, *_ = verdict("WL6", emptied(mixed))
    assert (first.verdict, first.value) == ("undecided", 0.5)


def test_ties_are_no_pairs() -> None:
    finished = emptied(dict.fromkeys(MIDDLE, 0.1), noise=0.0)
    assert verdict("WL6", finished)[0].note == "All pairs are ties."


def test_layers_that_are_not_emptied_both_ways_are_said() -> None:
    finished = emptied({"middle:2": 0.1, "top:2+bottom:2": 0.1})
    assert [tested.verdict for tested in verdict("WL6", finished)] == ["not run"]


HALVES = {"top:6": 0.2, "bottom:6": 0.1, "top:3": 0.9, "bottom:3": 0.9}


@pytest.mark.parametrize(
    ("odd", "even", "words"),
    [
        (0.05, 0.3, ["holds", "does not hold"]),
        (0.3, 0.05, ["does not hold", "holds"]),
        (0.15, 0.15, ["undecided", "undecided"]),
    ],
)
def test_every_other_layer(odd: float, even: float, words: list[str]) -> None:
    first, second, *others = verdict("WL7", emptied(HALVES | {"odd": odd, "even": even}))
    assert [first.verdict, second.verdict] == words
    assert first.value == pytest.approx(0.15 - odd)  # against the mean of the two halves
    assert "odd layers" in first.what
    assert "even ones" in first.note
    assert len(others) == 4  # two readings, two tasks


def test_half_of_the_layers_is_that_of_the_model() -> None:
    lost = {"top:3": 0.1, "bottom:3": 0.1, "odd": 0.05}
    first, second = verdict("WL7", emptied(lost, layers=6))[:2]
    assert (first.verdict, second.verdict) == ("holds", "not run")
    assert second.note == "No run empties even."
    twelve = verdict("WL7", emptied(lost, layers=12))
    assert twelve[0].note == "No run empties top:6, bottom:6."


def moved(
    spreads: Mapping[str, tuple[float, ...]], group: str = "moved", finished: Planted | None = None
) -> Planted:
    finished = finished or Planted()
    for name, values in spreads.items():
        for seed, value in enumerate(values):
            options = Prune(method=Layers(empty=name))
            if name == "half":
                options = Prune(method=Random(), ratio=0.5)
            change = {"layers": {"encoder": [value, 1.0]}, "spread": {"all": value}}
            record = {"kind": "transfer", "weight_change": change}
            finished.add(group, {"seed": seed}, record, Run("prune", "pocket", options=options))
    return finished


@pytest.mark.parametrize(
    ("spreads", "word"),
    [
        ({"half": (0.04, 0.05), "top:3": (0.05, 0.06)}, "holds"),
        ({"half": (0.4, 0.5), "top:3": (0.5, 0.6)}, "does not hold"),
        ({"half": (0.05, 0.3), "top:3": (0.04, 0.2)}, "undecided"),
        # the mean is below, but one run is not: any two layers of any cut, says the paper
        ({"half": tuple(0.01 + n / 1e4 for n in range(20)), "odd": (0.11,)},
         "undecided"),
    ],
)  # fmt: skip
def test_even_movement(spreads: dict[str, tuple[float, ...]], word: str) -> None:
    first, *others = verdict("WL8", moved(spreads))
    assert first.verdict == word
    assert others[0].what.endswith(", random 50 %")
    assert others[1].what.endswith(("layers top:3", "layers odd"))


def test_a_run_that_repeats_another_is_no_second_seed() -> None:
    first, half, top = verdict("WL8", moved({"half": (0.04, 0.05), "top:3": (0.06, 0.06)}))
    assert (first.n, half.seeds, top.seeds) == (3, 2, 1)
    assert "count once: layers top:3." in first.note
    assert top.verdict == "undecided"


def test_what_was_varied_stands_below_and_decides_nothing() -> None:
    finished = moved({"half": (0.4, 0.5), "top:3": (0.5, 0.6)})
    moved({"half": (0.04, 0.05), "top:3": (0.05, 0.06)}, "moved-slow", finished)
    moved({"whole": (0.3, 0.31, 0.32)}, "moved-whole", finished)
    first, *_, whole, slow = verdict("WL8", finished)
    assert (first.verdict, whole.verdict, slow.verdict) == (
        "does not hold",
        "does not hold",
        "holds",
    )
    assert whole.what.endswith("no head removed")
    assert (slow.n, slow.value) == (4, pytest.approx(0.05))


def test_movement_that_was_not_measured_is_not_run() -> None:
    finished = moved({"top:3": (0.0, 0.0)})
    for record in finished._records.values():
        record["weight_change"]["spread"]["all"] = None
    assert verdict("WL8", finished)[0].verdict == "not run"
