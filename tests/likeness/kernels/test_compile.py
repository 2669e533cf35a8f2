from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numba
import pytest

from headcount.likeness.kernels import compile


@pytest.mark.parametrize("decorate", [compile.kernel, compile.summing_kernel])
def test_without_a_place_for_the_cache_kernels_still_compile(decorate, monkeypatch):
    real, asked = numba.njit, []

    def njit(**options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available for file")
        return real(**options)

    monkeypatch.setattr(compile, "numba", SimpleNamespace(njit=njit))
    assert decorate(lambda x: x + 1)(2) == 3
    assert [options.get("cache", False) for options in asked] == [True, False]


def test_listing_the_distances_compiles_and_imports_nothing_heavy():
    code = (
        "import sys; from headcount.likeness.distances import DISTANCES;"
        "print(len(DISTANCES), 'numba' in sys.modules, 'torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["8", "False", "False"]


def test_asking_for_one_distance_loads_only_its_kernels():
    code = (
        "import sys, numpy as np; from headcount.likeness.distances import distances;"
        "distances(np.full((2, 2, 2), 0.5), 'cos');"
        "print(*[name for name in ('js', 'dcor', 'pc', 'cc', 'ridge')"
        " if f'headcount.likeness.kernels.{name}' in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
