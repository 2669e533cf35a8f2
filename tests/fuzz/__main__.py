"""`make fuzz`: damaged files for every reader, and what each said."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from fuzz.readers import READERS
from fuzz.running import Found, reader_of, run

SHOWN = 60
"""Failures that are printed."""


def main() -> int:
    """Run, print a table, and fail when an input was answered with anything but a sentence."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--readers", nargs="*", default=[], help="only these")
    parser.add_argument("--keep", type=Path, help="make input FIRST in this folder, and read it")
    asked = parser.parse_args()
    if asked.keep is not None:
        return _one(asked.first, asked.seed, asked.keep, asked.readers)
    started = time.monotonic()
    found = run(asked.count, asked.seed, asked.processes, first=asked.first, readers=asked.readers)
    _print(found)
    minutes = (time.monotonic() - started) / 60
    print(
        f"{found.count:,} inputs in {minutes:.1f} minutes, {len(found.failures)} failures; slowest "
        f"{found.slowest[0]:.2f} s (input {found.slowest[1]}, {found.slowest[2]}), most memory "
        f"{found.memory / 2**20:,.0f} MB"
    )
    return 1 if found.failures else 0


def _one(number: int, seed: int, folder: Path, names: list[str]) -> int:
    """One input again, with the whole traceback of what it raises."""
    folder.mkdir(parents=True, exist_ok=True)
    reader, rng = reader_of(number, seed, [r for r in READERS if not names or r.name in names])
    path = reader.made(folder, rng)
    print(f"{reader.name}: {path}")
    reader.read(path)
    return 0


def _print(found: Found) -> None:
    columns = ("inputs", "read", "refused", "failed", "ms each")
    print(f"{'reader':<12}" + "".join(f"{column:>9}" for column in columns))
    for reader in READERS:
        read, refused = found.read[reader.name], found.refused[reader.name]
        failed = sum(failure.reader == reader.name for failure in found.failures)
        count = read + refused + failed
        each = 1000 * found.seconds[reader.name] / max(count, 1)
        print(f"{reader.name:<12}{count:>9}{read:>9}{refused:>9}{failed:>9}{each:>9.1f}")
    for failure in found.failures[:SHOWN]:
        print(failure)
    if len(found.failures) > SHOWN:
        print(f"and {len(found.failures) - SHOWN} failures more")


if __name__ == "__main__":
    sys.exit(main())
