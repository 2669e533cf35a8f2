from __future__ import annotations

import gc
import math
from collections.abc import Generator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headcount.errors import UsageError
from headcount.models.timing import Estimate, Way, alternate, check_rounds, estimate, ratios


class Machine:
    """A clock that only work moves on, on a machine that gets slower with every run."""

    def __init__(self, drift: float = 1.0) -> None:
        self.now = 0.0
        self.drift = drift
        self.slowness = 1.0
        self.log: list[str] = []

    def way(self, name: str, seconds: float) -> Way:
        def run() -> None:
            self.log.append(name)
            self.now += seconds * self.slowness
            self.slowness *= self.drift

        return Way(name=name, run=run)

    def clock(self) -> float:
        return self.now


def test_every_way_runs_in_every_round_and_starts_in_turn() -> None:
    machine = Machine()
    ways = [machine.way(name, 1.0) for name in "abc"]
    times = alternate(ways, rounds=6, warmup=1, clock=machine.clock)
    assert {name: len(seconds) for name, seconds in times.items()} == dict.fromkeys("abc", 6)
    # once to warm up, once to see how long it takes, then six rounds
    assert "".join(machine.log) == "abcabcabcbcacababcbcacab"


def test_a_machine_that_slows_down_does_not_change_the_ratio() -> None:
    machine = Machine(drift=1.05)
    times = alternate(
        [machine.way("slow", 2.0), machine.way("fast", 1.0)], rounds=20, clock=machine.clock
    )
    assert times["slow"][-1] > 5 * times["slow"][0]
    found = ratios(times, "slow")
    assert found["slow"] == Estimate(1.0, 1.0, 1.0)
    assert found["fast"].median == pytest.approx(0.5, rel=0.06)
    assert found["fast"].low <= 0.5 <= found["fast"].high


def test_short_runs_are_repeated_within_a_measurement() -> None:
    machine = Machine()
    ways = [machine.way("a", 0.004), machine.way("b", 0.001)]
    times = alternate(ways, rounds=6, warmup=0, least=0.02, clock=machine.clock)
    assert machine.log.count("a") == machine.log.count("b") == 1 + 6 * 5
    assert times["a"] == pytest.approx([0.004] * 6)
    assert times["b"] == pytest.approx([0.001] * 6)


def test_what_is_around_is_not_timed_and_waiting_is() -> None:
    machine = Machine()
    state: list[str] = []

    @contextmanager
    def around() -> Generator[None]:
        machine.now += 100
        state.append("in")
        yield
        state.append("out")
        machine.now += 100

    def wait() -> None:
        assert state[-1] == "in"
        machine.now += 3

    way = Way(name="a", run=machine.way("a", 1.0).run, around=around, wait=wait)
    assert alternate([way], rounds=6, clock=machine.clock)["a"] == [4.0] * 6
    assert state.count("in") == state.count("out") == 9


def test_it_runs_without_gradients_and_garbage_collection_and_puts_both_back() -> None:
    seen: list[tuple[bool, bool]] = []
    way = Way(
        name="a", run=lambda: seen.append((torch.is_inference_mode_enabled(), gc.isenabled()))
    )
    alternate([way], rounds=6, least=0)
    assert set(seen) == {(True, False)}
    assert gc.isenabled()
    assert not torch.is_inference_mode_enabled()


def test_garbage_is_collected_again_after_a_failure() -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        alternate([Way(name="a", run=fail)], rounds=6)
    assert gc.isenabled()


def test_progress_sees_the_rounds() -> None:
    seen: list[int] = []
    machine = Machine()
    alternate(
        [machine.way("a", 1)],
        rounds=7,
        clock=machine.clock,
        track=lambda rounds: (seen.append(r) or r for r in rounds),
    )
    assert seen == list(range(7))


def test_too_few_rounds_are_refused() -> None:
    with pytest.raises(UsageError, match="5 rounds are too few for a 95 % interval; take 6"):
        check_rounds(5)
    with pytest.raises(UsageError):
        alternate([], rounds=0)


@pytest.mark.parametrize(
    ("n", "low", "high"), [(6, 1, 6), (8, 1, 8), (9, 2, 8), (15, 4, 12), (21, 6, 16), (30, 10, 21)]
)  # the ranks of the sign test's interval
def test_the_interval_is_that_of_order_statistics(n: int, low: int, high: int) -> None:
    found = estimate(list(range(n, 0, -1)))
    assert (found.low, found.high) == (low, high)
    assert found.median == (n + 1) / 2


@given(st.lists(st.floats(0.1, 10), min_size=6, max_size=60))
def test_the_interval_holds_the_median_and_covers_95_percent(values: list[float]) -> None:
    found = estimate(values)
    assert min(values) <= found.low <= found.median <= found.high <= max(values)
    n = len(values)
    ranks = sorted(values)
    k = ranks.index(found.low) + 1
    outside = 2 * sum(math.comb(n, i) for i in range(k)) / 2**n
    # with ties `index` finds the first of the equal ones, which only makes it surer
    assert outside <= 0.05
