"""Work spread over the cores: slices of a range, one slice a thread.

The kernels release the GIL, so plain Python threads use every core, and any number of callers may
call at once. `OMP_NUM_THREADS` is respected; `using(1)` keeps a block of code on one thread.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

from headcount.base.errors import UsageError

Part = TypeVar("Part")

_requested: contextvars.ContextVar[int | None] = contextvars.ContextVar("threads", default=None)
_pools: dict[int, ThreadPoolExecutor] = {}
# The threads of a pool do not survive a fork; a child makes its own.
os.register_at_fork(after_in_child=_pools.clear)


def count() -> int:
    """Threads the next kernel uses: requested, or OMP_NUM_THREADS, or the usable cores."""
    requested = _requested.get()
    if requested is not None:
        return requested
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdigit() and int(limit) > 0:
        return int(limit)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def using(threads: int | None) -> Generator[None]:
    """Run the block's kernels on `threads` threads; None leaves it as it is."""
    if threads is not None and threads < 1:
        raise UsageError(f"Kernels run on at least one thread, not {threads}.")
    token = _requested.set(threads if threads is not None else _requested.get())
    try:
        yield
    finally:
        _requested.reset(token)


def spread(work: Callable[[int, int], Part], total: int) -> list[Part]:
    """[work(low, high), …] over even slices of range(total), one a thread."""
    slices = max(1, min(count(), total))
    bounds = [total * k // slices for k in range(slices + 1)]
    if slices == 1:
        return [work(0, total)]
    *others, last = pairwise(bounds)
    futures = [_pool(slices).submit(work, *pair) for pair in others]
    result = work(*last)
    return [*(future.result() for future in futures), result]


def side_by_side(works: Sequence[Callable[[], Part]]) -> list[Part]:
    """[work(), …], each on one thread, as many at a time as there are threads.

    For what is too small to be spread: to hand over a slice takes longer than to work on it.
    """
    threads = min(count(), len(works))
    results: dict[int, Part] = {}
    waiting = iter(range(len(works)))

    def take() -> None:
        with using(1):
            for number in waiting:
                results[number] = works[number]()

    futures = [_pool(threads).submit(take) for _ in range(threads - 1)]
    take()
    for future in futures:
        future.result()
    return [results[number] for number in range(len(works))]


def _pool(threads: int) -> ThreadPoolExecutor:
    """The pool that works beside the calling thread."""
    if threads not in _pools:
        _pools.setdefault(threads, ThreadPoolExecutor(threads - 1, "headcount-kernel"))
    return _pools[threads]
