"""One decorator for every kernel: no GIL, machine code cached on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile `function` at its first call and cache the machine code.

    numba looks for a writable folder beside the source, then in the user's cache. Where there is
    none (a read-only container), the kernel is compiled anew in every process.
    """
    return _compile(function)


def summing_kernel(function: Function) -> Function:
    """A kernel whose plain loops may sum in any order, which is what SIMD does.

    Not for code in lanes: it has its order already, and reordering undoes it (js: a fifth slower).
    """
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})


def _compile(function: Callable[..., object], fastmath: set[str] | bool = False) -> Any:
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(function)
    except RuntimeError:
        return numba.njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)
