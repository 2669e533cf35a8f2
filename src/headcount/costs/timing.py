"""Time several ways of running a model against each other, fairly on a busy machine.

All ways run in turn, round after round, so that whatever slows the machine down slows all of
them. There is one statistic, the **speedup**: the median over the rounds of a way's time as a share
of the base's in the same round, which hardly notices rounds that were disturbed, turned over:
"1.27 × as fast" is 1 / 0.787. Its interval is that of the median. Seconds that are shown are the
base's median and that times the share (`seconds`), never two medians of their own: their quotient
would be another number.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from headcount.costs.shapes import check_rounds
from headcount.statistics import median_interval

PRECISION = 0.1
"""Rounds go on until the ends of an interval are no further from the median, as a share of it."""
LEAST_SECONDS = 0.02  # of one measurement: the clock and the calls around it must not matter


@dataclass(frozen=True, kw_only=True)
class TimedVariant:
    """One way of running: what is timed, and what must be so around it."""

    name: str
    run: Callable[[], Any]
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Entered before the clock starts."""
    wait: Callable[[], Any] | None = None
    """Waits until a device that works on its own has finished."""


@dataclass(frozen=True)
class Estimate:
    """A median and its 95 % interval."""

    median: float
    low: float
    high: float

    def times(self, factor: float) -> Estimate:
        """All of it times a number."""
        return Estimate(factor * self.median, factor * self.low, factor * self.high)

    def turned(self) -> Estimate:
        """A share of the time as how many times as fast, or back.

        >>> Estimate(0.8, 0.5, 1.0).turned()
        Estimate(median=1.25, low=1.0, high=2.0)
        """
        return Estimate(1 / self.median, 1 / self.high, 1 / self.low)


def alternate(
    ways: Sequence[TimedVariant],
    *,
    rounds: int,
    timing_seconds: float = 0.0,
    warmup: int = 2,
    least: float = LEAST_SECONDS,
    track: Callable[[Iterable[int]], Iterable[int]] = iter,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of one run, for every way and round; each round starts with another way.

    There are `rounds` of them, and more until the time of every way as a share of the first one's
    is within ± 10 % or `timing_seconds` have passed.
    """
    check_rounds(rounds)
    with torch.inference_mode(), _undisturbed():
        for way in ways:
            for _ in range(warmup):
                _time(way, 1, clock)
        slowest = max(_time(way, 1, clock) for way in ways)
        repeats = max(1, math.ceil(least / slowest)) if slowest > 0 else 1
        times: dict[str, list[float]] = {way.name: [] for way in ways}
        begun = clock()

        def precise() -> bool:
            return all(map(is_precise, ratios(times, ways[0].name).values()))

        def numbers() -> Generator[int]:
            for number in count():
                if number >= rounds and (clock() - begun >= timing_seconds or precise()):
                    return
                yield number

        for number in track(numbers()):
            start = number % len(ways)
            for way in (*ways[start:], *ways[:start]):
                times[way.name].append(_time(way, repeats, clock))
    return times


def is_precise(value: Estimate) -> bool:
    """Whether the interval is within ± 10 % of the median.

    >>> is_precise(Estimate(0.8, 0.75, 0.87)), is_precise(Estimate(0.8, 0.75, 0.9))
    (True, False)
    """
    return max(value.high - value.median, value.median - value.low) <= PRECISION * value.median


def ratios(times: Mapping[str, Sequence[float]], base: str) -> dict[str, Estimate]:
    """Every way's time as a share of the base's in the same round: `turned()` is its speedup."""
    return {
        name: estimate([time / other for time, other in zip(seconds, times[base], strict=True)])
        for name, seconds in times.items()
    }


def seconds(times: Mapping[str, Sequence[float]], base: str) -> dict[str, Estimate]:
    """Seconds of every way that go with `ratios`: the base's median times a way's share of it."""
    dense = estimate(times[base])
    shares = ratios(times, base)
    return {
        name: dense if name == base else share.times(dense.median) for name, share in shares.items()
    }


def estimate(values: Sequence[float]) -> Estimate:
    """The median with its 95 % interval.

    >>> estimate([5, 1, 4, 2, 6, 3, 7])
    Estimate(median=4, low=1, high=7)
    """
    return Estimate(statistics.median(values), *median_interval(values))


def _time(way: TimedVariant, repeats: int, clock: Callable[[], float]) -> float:
    with way.around():
        start = clock()
        for _ in range(repeats):
            way.run()
        if way.wait is not None:
            way.wait()
        return (clock() - start) / repeats


@contextmanager
def _undisturbed() -> Generator[None]:
    """No garbage collection in the middle of a measurement."""
    was = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
