"""Work spread over the cores: slices of a range, one slice a thread.

The kernels release the GIL, so plain Python threads use every core, and any number of callers may
call at once. `OMP_NUM_THREADS` is respected; `using(1)` keeps a block of code on one thread.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeVar

from headcount.errors import UsageError

Part = TypeVar("Part")

_asked: contextvars.ContextVar[int | None] = contextvars.ContextVar("threads", default=None)
_pools: dict[int, ThreadPoolExecutor] = {}
# The threads of a pool do not survive a fork; a child makes its own.
os.register_at_fork(after_in_child=_pools.clear)


def count() -> int:
    """Threads the next kernel uses: asked for, or OMP_NUM_THREADS, or the usable cores."""
    asked = _asked.get()
    if asked is not None:
        return asked
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if limit.isdigit() and int(limit) > 0:
        return int(limit)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def using(threads: int | None) -> Generator[None]:
    """Run the block's kernels on `threads` threads; None leaves it as it is."""
    if threads is not None and threads < 1:
        raise UsageError(f"Kernels run on at least one thread, not {threads}.")
    token = _asked.set(threads if threads is not None else _asked.get())
    try:
        yield
    finally:
        _asked.reset(token)


def spread(work: Callable[[int, int], Part], total: int) -> list[Part]:
    """[work(low, high), …] over even slices of range(total), one a thread."""
    slices = max(1, min(count(), total))
    bounds = [total * k // slices for k in range(slices + 1)]
    if slices == 1:
        return [work(0, total)]
    pool = _pools.setdefault(slices, ThreadPoolExecutor(slices - 1, "headcount-kernel"))
    *others, own = pairwise(bounds)
    futures = [pool.submit(work, *pair) for pair in others]
    last = work(*own)
    return [*(future.result() for future in futures), last]
