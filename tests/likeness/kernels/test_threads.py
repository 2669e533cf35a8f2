from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.likeness.distances import distances
from headcount.likeness.kernels.threads import count, side_by_side, spread, using
from likeness.oracles import ORACLES, hard_attention


@pytest.mark.parametrize("total", [0, 1, 2, 3, 10])
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_slices_cover_the_range_once(threads, total):
    with using(threads):
        parts = spread(lambda low, high: list(range(low, high)), total)
    assert [k for part in parts for k in part] == list(range(total))
    assert len(parts) <= max(threads, 1)


def test_slices_run_on_different_threads():
    both = threading.Barrier(2, timeout=10)
    with using(2):
        names = spread(lambda low, high: (both.wait(), threading.get_ident())[1], 2)
    assert len(set(names)) == 2


def test_an_error_in_any_slice_comes_out():
    def work(low, high):
        if low == 0:
            raise ZeroDivisionError

    with using(2), pytest.raises(ZeroDivisionError):
        spread(work, 2)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_side_by_side_keeps_the_order_and_one_thread_each(threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")  # what a thread of the pool would take unasked
    with using(threads):
        found = side_by_side([lambda place=place: (place, count()) for place in range(5)])
        assert count() == threads
    assert found == [(place, 1) for place in range(5)]


def test_side_by_side_runs_on_different_threads_and_lets_errors_out():
    both = threading.Barrier(2, timeout=10)
    with using(2):
        names = side_by_side([lambda: (both.wait(), threading.get_ident())[1]] * 2)
        assert len(set(names)) == 2
        for works in ([int, lambda: 1 // 0], [lambda: 1 // 0, int], [lambda: 1 // 0] * 2):
            with pytest.raises(ZeroDivisionError):
                side_by_side(works)


def test_how_many_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert count() == 3
    with using(5):
        assert count() == 5
        with using(None):
            assert count() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert count() == len(os.sched_getaffinity(0))
    with pytest.raises(UsageError, match="at least one"), using(0):
        pass


def test_callers_on_many_threads_get_what_one_gets():
    samples = [hard_attention(20, 9, 9, seed=seed) for seed in range(12)]
    alone = [distances(sample, ORACLES, threads=2) for sample in samples]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda sample: distances(sample, ORACLES, threads=2), samples))
    for one, other in zip(alone, together, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in ORACLES)


def test_a_forked_child_makes_its_own_threads():
    attention = hard_attention(12, 6, 6)
    wanted = distances(attention, "js", threads=2)["js"]
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that waits for its parent's threads waits for ever
        try:
            same = np.array_equal(distances(attention, "js", threads=2)["js"], wanted)
            os._exit(0 if same else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
