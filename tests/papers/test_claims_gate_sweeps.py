"""AutoAttention's claims on learning rate and penalty, on runs whose answer is planted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from papers.planted import SEEDS, Planted, prune, verdict

RATES = (0.1, 0.3, 1.0, 3.0)


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
    for place in range(4):
        record = prune(0.8, kept={"encoder": [8 - place]})
        more.add("rates", {"method": "straight-through", "seed": 0, "gate_lr": place}, record)
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
    for mu, each in scores.items():
        for seed, score in enumerate(each):
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
