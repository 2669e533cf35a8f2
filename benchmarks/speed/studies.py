"""Two workers against one, on runs of one thread: what executors cost beside the work.

    python benchmarks/speed/studies.py [--quick] [--only processes,ray]

Every run uses up the same processor time. The goal is 1.7 times as many runs an hour with two
workers as with one; on a machine that is busy otherwise, or has one core, it cannot be met.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}

import headcount as hc
from headcount.base.extras import EXTRAS
from headcount.studies.executors.protocol import ExecutorOptions

GOAL = 1.7


def seconds(executor: str, workers: int, study: dict[str, Any]) -> float:
    """How long the runs take, from the first that began to the last that ended."""
    with tempfile.TemporaryDirectory() as folder:
        opened = hc.study(study, folder)
        opened.run(ExecutorOptions(executor=executor, workers=workers))  # pyright: ignore
        ends = [path.stat().st_mtime for path in Path(folder).glob("runs/*/record.json")]
        began = min(ends) - float(study["runs"]["each"]["options"]["work"])
        return max(ends) - began


def main() -> int:
    """Time both, and say how they compare."""
    parser = argparse.ArgumentParser(description="Two workers against one.")
    parser.add_argument("--quick", action="store_true", help="see that it runs")
    parser.add_argument("--only", default="processes,ray")
    options = parser.parse_args()
    work, count = (0.1, 4) if options.quick else (2.0, 8)
    group = {"kind": "probe", "model": "none", "seeds": count, "options": {"work": work}}
    study = {"name": "work", "runs": {"each": group}}
    missed = 0
    print(f"{count} runs of {work:g} s, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for executor in options.only.split(","):
        if any(extra.name == executor and extra.missing for extra in EXTRAS):
            print(f"{executor}: not installed")
            continue
        began = time.monotonic()
        one, two = (seconds(executor, workers, study) for workers in (1, 2))
        print(
            f"{executor}: one worker {one:.1f} s, two {two:.1f} s: {one / two:.2f} × "
            f"({time.monotonic() - began:.1f} s with starting and ending)"
        )
        missed += not options.quick and one / two < GOAL
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
