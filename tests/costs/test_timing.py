from __future__ import annotations

import gc
import itertools
import math
from collections.abc import Generator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UsageError
from headcount.costs.timing import (
    Estimate,
    TimedVariant,
    alternate,
    check_rounds,
    estimate,
    is_precise,
    ratios,
    seconds,
)


class Machine:
    """A clock that only work moves on, on a machine that gets slower with every run."""

    def __init__(self, drift: float = 1.0) -> None:
        self.now = 0.0
        self.drift = drift
        self.slowness = 1.0
        self.log: list[str] = []

    def way(self, name: str, seconds: float) -> TimedVariant:
        def run() -> None:
            self.log.append(name)
            self.now += seconds * self.slowness
            self.slowness *= self.drift

        return TimedVariant(name=name, run=run)

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


def test_seconds_that_are_shown_have_the_ratio_that_is_shown() -> None:
    # the medians of both have another quotient than the rounds
    times = {"dense": [1.0, 2.0, 3.0, 1.0, 2.0, 3.0], "small": [0.8, 1.6, 1.5, 0.8, 1.6, 1.5]}
    shares, took = ratios(times, "dense"), seconds(times, "dense")
    assert estimate(times["dense"]).median / estimate(times["small"]).median != pytest.approx(1.25)
    assert took["dense"] == estimate(times["dense"])
    assert shares["small"].turned().median == pytest.approx(1.25)
    assert took["dense"].median / took["small"].median == pytest.approx(1.25)
    assert took["small"].low / took["dense"].median == pytest.approx(shares["small"].low)
    assert shares["small"].turned().turned().low == pytest.approx(shares["small"].low)


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

    way = TimedVariant(name="a", run=machine.way("a", 1.0).run, around=around, wait=wait)
    assert alternate([way], rounds=6, clock=machine.clock)["a"] == [4.0] * 6
    assert state.count("in") == state.count("out") == 9


def test_it_runs_without_gradients_and_garbage_collection_and_puts_both_back() -> None:
    seen: list[tuple[bool, bool]] = []
    way = TimedVariant(
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
        alternate([TimedVariant(name="a", run=fail)], rounds=6)
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


class Noisy(Machine):
    """A machine on which `small` takes anything between half and all of its time."""

    def way(self, name: str, seconds: float) -> TimedVariant:
        plain = super().way(name, seconds)
        shares = itertools.cycle([1.0, 0.5, 0.75, 0.6, 0.9, 0.7, 0.8])

        def run() -> None:
            before = self.now
            plain.run()
            if name == "small":
                self.now = before + (self.now - before) * next(shares)

        return TimedVariant(name=name, run=run)


@pytest.mark.parametrize(("limit", "rounds"), [(0, 6), (20, 12), (10_000, None)])
def test_rounds_go_on_until_the_interval_is_narrow_or_the_time_is_up(limit, rounds) -> None:
    machine = Noisy()
    ways = [machine.way("dense", 1.0), machine.way("small", 1.0)]
    seen: list[int] = []
    times = alternate(
        ways, rounds=6, timing_seconds=limit, clock=machine.clock,
        track=lambda numbers: (seen.append(number) or number for number in numbers),
    )  # fmt: skip
    assert len(times["dense"]) == len(times["small"]) == len(seen)
    assert seen == list(range(len(seen)))
    assert is_precise(ratios(times, "dense")["small"]) == (rounds is None)
    before = {name: seconds[:-1] for name, seconds in times.items()}
    assert not is_precise(ratios(before, "dense")["small"])
    assert rounds in (None, len(seen))


def test_a_quiet_machine_takes_no_round_more() -> None:
    machine = Machine()
    ways = [machine.way("dense", 1.0), machine.way("small", 0.5)]
    times = alternate(ways, rounds=6, timing_seconds=10_000, clock=machine.clock)
    assert len(times["small"]) == 6


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
