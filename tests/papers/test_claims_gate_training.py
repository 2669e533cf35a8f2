"""AutoAttention's claims on gates in training, on runs whose answer is planted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from papers.planted import SEEDS, Planted, prune, verdict

TASKS = ("cola", "mrpc")
RATES = (0.1, 0.3, 1.0, 3.0)


def half(
    reopened: Sequence[int] = (4, 5, 6),
    kept: int = 1,
    left: Sequence[Sequence[int]] = ((4,) * 6,) * 3,
    gaps: dict[str, Sequence[float | None]] | None = None,
) -> Planted:
    """Gates with half the heads gone: by seed what opened again, what is left, and the gap."""
    finished = Planted()
    every = {"straight-through": (0.0, 0.0, 0.0)} | (gaps or {})
    for task in TASKS:
        for name, values in every.items():
            for seed in SEEDS:
                learned = {
                    "gates_reopened": reopened[seed],
                    "gates_reopened_and_kept": min(kept, reopened[seed]),
                    "gap": None if values[seed] is None else {"gap": values[seed]},
                }
                record = prune(
                    0.8, kept={"encoder": list(left[seed])}, learned=learned,
                    method={"name": name, "coarse": "linear"},
                )  # fmt: skip
                axes = {"task": task, "method": name, "ratio": 0.5, "seed": seed}
                finished.add("gates", axes, record)
    return finished


@pytest.mark.parametrize(
    ("reopened", "word"),
    [((4, 5, 6), "holds"), ((0, 0, 0), "does not hold"), ((0, 0, 9), "undecided")],
)
def test_gates_open_again(reopened: tuple[int, ...], word: str) -> None:
    first, kept, *others = verdict("AA4", half(reopened))
    assert (first.verdict, first.seeds, first.n, first.of) == (word, 3, 96, "gates")
    assert first.value == pytest.approx(sum(reopened) / 3 / 48)
    assert not others
    if word == "holds":
        assert kept.value == pytest.approx((1 / 4 + 1 / 5 + 1 / 6) / 3)
    if word == "does not hold":
        assert kept.verdict == "not run"  # of none, none is open at the end


def test_gates_open_again_without_a_ratio() -> None:
    finished = half()
    for rate in (0.1, 1.0):
        for seed in SEEDS:
            learned = {"gates_reopened": 0, "gates_reopened_and_kept": 0}
            axes = {"task": "cola", "method": "straight-through", "gate_lr": rate, "seed": seed}
            finished.add("rates", axes, prune(0.8, learned=learned))
        closed: dict[str, Any] = {"all_closed": {"step": 3}}  # no trace is left of it
        finished.add("rates", axes | {"seed": 9}, prune(0.1, **closed))
    first, _, free, *_ = verdict("AA4", finished)
    assert (first.verdict, free.verdict) == ("holds", "does not hold")
    assert "no ratio asked for" in free.what


@pytest.mark.parametrize(
    ("left", "word", "value"),
    [
        (((5, 5, 5, 5, 2, 2), (5, 5, 4, 6, 3, 1), (5, 5, 5, 5, 1, 2)), "holds", -0.3958333),
        (((3, 3, 3, 3, 6, 6), (3, 3, 3, 3, 6, 5), (3, 3, 3, 3, 6, 7)), "does not hold", 0.375),
        (((4, 4, 4, 4, 4, 4), (5, 5, 4, 4, 2, 4), (4, 3, 3, 3, 5, 6)), "undecided", 0.0),
    ],
)
def test_the_last_layers(left: Any, word: str, value: float) -> None:
    first, *others = verdict("AA5", half(left=left))
    assert first.verdict == word
    if word != "undecided":
        assert first.value == pytest.approx(value)
    assert others[-1].what.startswith("Spearman")
    assert "Left by layer: " in first.note


def test_the_last_third_of_twelve_layers_is_four() -> None:
    twelve = (4, 4, 4, 4, 4, 4, 4, 4, 2, 2, 2, 2)
    first, *_ = verdict("AA5", half(left=(twelve,) * 3))
    assert first.value == pytest.approx(-0.25)
    assert first.n == 96


def test_layers_are_counted_over_all_stacks() -> None:
    finished = half()
    for record in finished._records.values():
        more = prune(0.8, kept={"encoder": [8, 8, 8], "decoder": [8, 8, 2]})
        record["mask"].update(more["mask"])  # type: ignore[attr-defined]
    first, *_ = verdict("AA5", finished)
    assert first.value == pytest.approx(10 / 16 - 1)


@pytest.mark.parametrize(
    ("gaps", "word"),
    [
        ((0.05, 0.06, 0.04), "holds"),
        ((0.0, 0.0, 0.0), "does not hold"),
        ((-0.05, -0.06, -0.04), "does not hold"),
        ((-0.1, 0.0, 0.2), "undecided"),
    ],
)
def test_train_and_test(gaps: tuple[float, ...], word: str) -> None:
    first, size, *by_task = verdict("AA8", half(gaps={"hard-concrete": gaps}))
    assert (first.verdict, first.n) == (word, 1000)
    assert first.value == pytest.approx(sum(gaps) / 3)
    assert size.value == pytest.approx(sum(map(abs, gaps)) / 3)
    assert "their gap is 0" in first.note
    assert len(by_task) == 2


def test_a_gap_of_our_gates_counts_against_them() -> None:
    gaps = {"hard-concrete": (0.05, 0.06, 0.04), "straight-through": (0.15, 0.16, 0.15)}
    first, *_ = verdict("AA8", half(gaps=gaps))
    assert first.verdict == "does not hold"
    assert "gap is 0" not in first.note


def test_a_gap_that_was_not_measured_is_not_run() -> None:
    first, *_ = verdict("AA8", half(gaps={"hard-concrete": (None, None, None)}))
    assert first.verdict == "not run"
    assert verdict("AA8", half())[0].note == "No run of hard-concrete removes half the heads."


def swept(left: Callable[[float, int], int], tasks: Sequence[str] = ("cola",)) -> Planted:
    """`left` says how many of 48 heads a learning rate and a seed leave."""
    finished = Planted()
    for task in tasks:
        for rate in RATES:
            for seed in SEEDS:
                kept = [left(rate, seed), *[0] * 5]
                record = prune(0.8, kept={"encoder": kept}, heads=48 if kept[0] else 8)
                if not kept[0]:
                    record["all_closed"] = {"step": 9}
                axes = {"task": task, "method": "straight-through", "ratio": "free"}
                finished.add("rates", axes | {"seed": seed, "gate_lr": rate}, record)
    return finished


def test_a_larger_rate_closes_more() -> None:
    first, alone = verdict("AA6", swept(lambda rate, seed: 40 - 10 * RATES.index(rate) - seed))
    assert (first.verdict, first.n, first.of, first.seeds) == ("holds", 12, "runs", 3)
    assert alone.value == pytest.approx(1.0)
    assert first.low < first.value < 1


def test_a_larger_rate_closes_fewer() -> None:
    first, *_ = verdict("AA6", swept(lambda rate, seed: 10 + 10 * RATES.index(rate) + seed))
    assert first.verdict == "does not hold"
    assert first.value < -0.9


def test_a_rate_that_does_not_matter() -> None:
    first, *_ = verdict(
        "AA6", swept(lambda rate, seed: (7, 3, 9, 4)[(RATES.index(rate) + seed) % 4])
    )
    assert first.verdict == "undecided"


def test_ranks_are_within_tasks() -> None:
    finished = swept(lambda rate, seed: 40 - 10 * RATES.index(rate))
    other = swept(lambda rate, seed: 1 + RATES.index(rate), ["mrpc"])
    for cell in other.cells["rates"]:
        if cell.axes["seed"] == 0:
            finished.add("rates", cell.axes, other._records[cell.key])
    first, *others = verdict("AA6", finished)
    # squares of 12 ranks that go up and of 4 that go down, each about the mean of its task
    assert (first.value, first.n) == (pytest.approx((135 - 5) / (135 + 5)), 16)
    assert not others


def test_a_few_runs_in_order_decide_nothing() -> None:
    finished = Planted()
    for rate in RATES[:3]:
        record = prune(0.8, kept={"encoder": [8 - int(2 * rate)]})
        finished.add("rates", {"method": "straight-through", "seed": 0, "gate_lr": rate}, record)
    first, *_ = verdict("AA6", finished)
    assert (first.verdict, first.n) == ("undecided", 3)
    more = Planted()
    for at in range(4):
        record = prune(0.8, kept={"encoder": [8 - at]})
        more.add("rates", {"method": "straight-through", "seed": 0, "gate_lr": at}, record)
    first, *_ = verdict("AA6", more)
    assert (first.value, first.low, first.verdict) == (
        pytest.approx(1),
        pytest.approx(1),
        "undecided",
    )
    assert "p 0.083." in first.note


def test_all_gates_closed_is_a_sparsity_of_one() -> None:
    first, *_ = verdict("AA6", swept(lambda rate, seed: 0 if rate == 3.0 else 30 - int(20 * rate)))
    assert first.verdict == "holds"
    assert "All gates closed in 3 of 12 runs" in first.note


def test_nothing_to_correlate() -> None:
    assert verdict("AA6", swept(lambda rate, seed: 5))[0].verdict == "not run"


def penalised(scores: dict[float, Sequence[float]], closed: float = 9.0) -> Planted:
    """Penalty -> score by seed of a model that scored 0.8 as given."""
    finished = Planted()
    for mu, by_seed in scores.items():
        for seed, score in enumerate(by_seed):
            record = prune(score, before=0.8)
            if mu >= closed:
                record["all_closed"] = {"step": 2}
            axes = {"task": "cola", "method": "straight-through", "seed": seed, "mu": mu}
            finished.add("penalties", axes, record)
    return finished


FINE = (0.8, 0.79, 0.81)


@pytest.mark.parametrize(
    ("beyond", "word"),
    [
        ((0.1, 0.12, 0.11), "holds"),
        ((0.85, 0.84, 0.85), "does not hold"),
        ((0.8, 0.7, 0.9), "undecided"),
    ],
)
def test_collapse(beyond: tuple[float, ...], word: str) -> None:
    scores = {1e-4: FINE, 1e-3: FINE, 1e-2: FINE, 1e-1: beyond}
    first, second = verdict("AA7", penalised(scores, closed=0.1))
    assert (first.verdict, first.seeds) == (word, 3)
    assert first.value == pytest.approx(1 - sum(beyond) / 3 / 0.8)
    assert second.value == pytest.approx(first.value)
    assert "All gates closed in 3 of 12 runs" in first.note
    assert "0.1: " in first.note


def test_the_limit_itself_is_not_beyond_it() -> None:
    scores = {1e-3: FINE, 1e-2: (0.1, 0.1, 0.1), 1e-1: (0.1, 0.1, 0.1)}
    first, second = verdict("AA7", penalised(scores))
    # up to 0.01 the mean is half fallen; up to 0.001 all is well
    assert first.value == pytest.approx(0.5 * (1 + 0.125) - 0.125)
    assert second.value == pytest.approx(1 - 0.125)


def test_penalties_on_one_side_only() -> None:
    first, *_ = verdict("AA7", penalised({1e-4: FINE, 1e-3: FINE}))
    assert (first.verdict, first.note) == (
        "not run",
        "Penalties on both sides are needed; tried: 0.0001, 0.001.",
    )
