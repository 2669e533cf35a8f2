"""A study killed with `kill -9` at drawn writes and renames, and run again until it is over.

    python benchmarks/coverage/study_kills.py [--kills 200] [--seed 0] [--real 40] [--keep FOLDER]

`--real` of the kills hit a study of real runs (a trained base, a matrix of distances, importance,
pruning with and without training), executed serially; the others hit one of probes, serially and in
processes, where the driver or a worker is killed. Every place where something is written, renamed
or deleted counts (`base/faults.py`), and each fifth kill comes when a result was published and
before anybody has acknowledged it. After each series every run must be there once, nothing may be
left of the work, and the records, models and tables must be those of an undisturbed study.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests")]
from kills import contents, differences, launch

import headcount as hc
from cluster.tiny import data_in, tiny
from headcount.base.faults import AT, LOG

MOST = 6
"""Kills of one series before it is left alone."""
PROBES: dict[str, Any] = {
    "name": "probes",
    "lease": 20,
    "retries": 9,
    "runs": {
        "base": {"kind": "probe", "model": "none", "options": {"say": "base"}},
        "each": {"kind": "probe", "model": {"run": "base"}, "seeds": 4},
        "last": {"kind": "probe", "model": {"run": "each"}, "seeds": 4, "options": {"say": "z"}},
    },
}


@dataclass(eq=False)
class Disturbed:
    """A study, what it leaves when nobody disturbs it, and where it can be killed."""

    name: str
    folder: Path
    executors: tuple[str, ...]
    left: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, str]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    series: int = 0
    kills: Counter[str] = field(default_factory=Counter)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def run(self, executor: str, at: int | None) -> tuple[int | None, str | None]:
        """Run it, with a kill at this place: the exit code, and where somebody was killed."""
        log = self.folder / "place"
        log.unlink(missing_ok=True)
        for name, value in ((AT, at), (LOG, log)):
            os.environ.pop(name, None)
            if at is not None:
                os.environ[name] = str(value)
        line = ["study", "run", "study.json", "--out", str(self.out), "--executor", executor]
        code = launch(line, self.folder).code
        lines = log.read_text(encoding="utf-8").split() if log.exists() else []
        if at == 0:
            self.places = lines
        for name in (AT, LOG):
            os.environ.pop(name, None)
        return code, lines[0] if lines and at else None

    def table(self) -> list[dict[str, str]]:
        rows = hc.study(self.folder / "study.json", self.out).table().rows
        return [{name: repr(row[name]) for name in row if name != "seconds"} for row in rows]

    def undisturbed(self) -> None:
        code, _ = self.run("serial", 0)
        if code:
            raise SystemExit(self.folder.with_name(f"{self.folder.name}.log.txt").read_text())
        self.left, self.rows = contents(self.out / "runs"), self.table()
        kinds = Counter(point.rpartition(":")[0] for point in self.places)
        print(
            f"{self.name}: {len(self.rows)} runs, {len(self.places)} places to be killed at, of "
            f"{len(set(self.places))} kinds ({dict(kinds)})",
            flush=True,
        )
        shutil.rmtree(self.out)

    def one_series(self, draw: random.Random, most: int) -> list[str]:
        """Kill and run again until it is over: what is wrong after that."""
        executor = self.executors[self.series % len(self.executors)]
        self.series += 1
        # just published: the second of the two places in `publish`
        publish = [at for at, point in enumerate(self.places, 1) if ":publish:" in point]
        published = publish[1::2]
        kills, began = 0, time.monotonic()
        code: int | None = None
        while code is None:
            at: int | None = None
            if kills < min(MOST, most):
                fifth = sum(self.kills.values()) % 5 == 4
                # in processes, each counts for itself, and workers take half of the runs each
                scale = 1 if executor == "serial" else 2
                at = draw.choice(published if fifth else range(1, len(self.places) + 1)) // scale
            code, point = self.run(executor, None if at is None else max(1, at))
            if point is not None:
                kills += 1
                self.kills[point] += 1
            if code:
                log = self.folder.with_name(f"{self.folder.name}.log.txt").read_text()
                return [f"exit code {code}: {log.splitlines()[-1]}"]
        problems = self.wrong()
        print(
            f"{self.name}, {executor}: {kills} kills, {time.monotonic() - began:.0f} s: "
            f"{'; '.join(problems) or 'the same'}",
            flush=True,
        )
        return problems

    def wrong(self) -> list[str]:
        problems = differences(self.left, contents(self.out / "runs"))
        for name in ("claims", "work"):
            problems += [f"{path} is left" for path in (self.out / name).glob("*")]
        if self.table() != self.rows:
            problems.append("the table differs")
        return problems


def prepared(folder: Path, data: dict[str, Any], executors: tuple[str, ...]) -> Disturbed:
    folder.mkdir(parents=True)
    (folder / "study.json").write_text(json.dumps(data), encoding="utf-8")
    return Disturbed(name=folder.name, folder=folder, executors=executors)


def main() -> int:
    """Kill, compare, and say what was found."""
    parser = argparse.ArgumentParser(description="Kill studies and see whether they recover.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--real", type=int, default=40, help="of them in real runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="leave all folders there")
    options = parser.parse_args()
    root = options.keep or Path(tempfile.mkdtemp(prefix="headcount-kills-"))
    draw, wrong = random.Random(options.seed), 0
    studies = {
        prepared(root / "probes", PROBES, ("serial", "processes")): options.kills - options.real,
        prepared(root / "real", tiny(data_in(root / "data")), ("serial",)): options.real,
    }
    try:
        for study, kills in studies.items():
            if kills:
                study.undisturbed()
            while (left := kills - study.kills.total()) > 0:
                if study.one_series(draw, left):
                    wrong += 1
                    shutil.move(study.out, root / f"{study.name}-{study.series}")
                else:
                    shutil.rmtree(study.out)
    finally:
        if options.keep is None and not wrong:
            shutil.rmtree(root, ignore_errors=True)
    for study in studies:
        print(f"{study.name}: {study.kills.total()} kills in {study.series} series")
        for point, count in sorted(study.kills.items()):
            print(f"  {count:4} × {point}")
    print(f"{sum(study.kills.total() for study in studies)} kills: {wrong} series differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
