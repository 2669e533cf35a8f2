"""A study of 10,000 runs that do nothing: planned, executed, listed and summarised.

    python benchmarks/speed/many_runs.py [--quick] [--runs 10000] [--profile plan]

Plan, status and table must take less than 5 seconds each, and all records must be read in less than
10; memory must not grow with how often one looks.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import os
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

import headcount as hc
from headcount.runs.record import load_record

GOALS = {"plan": 5.0, "status": 5.0, "table": 5.0, "records": 10.0}


def timed(name: str, call: Callable[[], Any], profiled: str | None) -> float:
    """Seconds it takes; with a profile where that was asked for."""
    profile = cProfile.Profile() if name == profiled else None
    began, used = time.perf_counter(), time.process_time()
    if profile is not None:
        profile.enable()
    call()
    if profile is not None:
        profile.disable()
        pstats.Stats(profile).sort_stats("cumulative").print_stats(30)
    took, used = time.perf_counter() - began, time.process_time() - used
    goal = f", goal {GOALS[name]:g} s" if name in GOALS else ""
    print(f"{name}: {took:.2f} s ({used:.2f} s of the processor{goal})", flush=True)
    return took


def memory() -> float:
    gc.collect()
    return psutil.Process().memory_info().rss / 2**20


def main() -> int:
    """Make the runs, and time what is asked of them."""
    parser = argparse.ArgumentParser(description="A study of many runs.")
    parser.add_argument("--quick", action="store_true", help="300 runs: see that it works")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--profile", help="plan, run, status, table or records")
    options = parser.parse_args()
    seeds = (300 if options.quick else options.runs) // 10
    group = {"kind": "probe", "model": {"run": "base"}, "seeds": seeds}
    group |= {"grid": {"options.say": list("abcdefghij")}}
    base = {"kind": "probe", "model": "none"}
    took: dict[str, float] = {}
    print(f"{seeds * 10 + 1:,} runs, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "many.yaml", Path(folder) / "out"
        file.write_text(json.dumps({"name": "many", "runs": {"base": base, "each": group}}))

        def go(name: str, call: Callable[[], Any]) -> None:
            took[name] = max(took.get(name, 0.0), timed(name, call, options.profile))

        go("plan", lambda: hc.study(file, out).plan())
        timed("run", lambda: hc.study(file, out).run(), options.profile)
        go("plan", lambda: hc.study(file, out).plan())
        go("status", lambda: hc.study(file, out).status())
        go("table", lambda: hc.study(file, out).table().save(out))
        before = memory()
        for _ in range(3):
            study = hc.study(file, out)
            study.plan(), study.status(), study.table()
            del study
        after = memory()
        print(f"memory: {before:.0f} MB, after three more looks {after:.0f} MB")
        runs = sorted((out / "runs").iterdir())
        go("records", lambda: [load_record(path) for path in runs])
    missed = [name for name, goal in GOALS.items() if took[name] > goal]
    if missed and not options.quick:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
