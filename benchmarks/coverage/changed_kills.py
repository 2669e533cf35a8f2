"""Work on a changed question killed with `kill -9`, and asked for again.

    python benchmarks/coverage/changed_kills.py [--kills 40] [--seed 0] [--only search,study]
        [--keep FOLDER]

- search: the folder holds the finished answer of another question, and `search --overwrite` is
  killed, by turns at a drawn write, rename or deletion (`base/faults.py`) and after a drawn
  share of its processor time. The command is given again, by turns with `--overwrite` and without;
  without it may be refused, while the folder is still that of the other question.
- study: a study is killed, its file changed, `study run --update` killed, and given again.

What is left must be what work leaves that was not killed: answer, models, records, tables.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parent)]
from kills import TASK, Ended, contents, differences, launch, prepare
from study_kills import PROBES

import headcount as hc
from headcount.base.faults import AT, LOG

SEARCH = [
    "search",
    "../base",
    *TASK,
    "--calibration-samples",
    "16",
    "--bootstrap",
    "40",
    "--seeds",
    "1",
    "--baseline",
    "1",
    "--no-bench",
    "--out",
    "out",
]
EARLIER, ASKED = ["--max-drop", "50%"], ["--max-drop", "5%"]
CHANGED = PROBES | {
    "runs": {
        **PROBES["runs"],
        "each": {"kind": "probe", "model": {"run": "base"}, "seeds": 6, "options": {"say": "b"}},
    }
}
NOT_KILLED = "was done before it could be killed"
STUDY = ["study", "run", "study.json", "--out", "out", "--executor", "serial"]


def run(line: list[str], folder: Path, at: int | None = None, after: float | None = None) -> Ended:
    """A command, killed at a point or after so much processor time; at 0 its points are listed."""
    here = {} if at is None else {AT: str(at), LOG: str(folder.with_name(f"{folder.name}.places"))}
    os.environ |= here
    try:
        return launch(line, folder, after)
    finally:
        for name in here:
            del os.environ[name]


def places(folder: Path) -> int:
    """How many places the last undisturbed command had."""
    return len(folder.with_name(f"{folder.name}.places").read_text(encoding="utf-8").split())


def require_done(ended: Ended, folder: Path) -> Ended:
    if ended.code:
        raise SystemExit(folder.with_name(f"{folder.name}.log.txt").read_text(encoding="utf-8"))
    return ended


def plain(files: dict[str, Any]) -> dict[str, str]:
    """Contents as text; whether --overwrite was given is in commands, and no part of a result."""
    return {name: repr(content).replace(" --overwrite", "") for name, content in files.items()}


@dataclass
class Search:
    """A search over the answer of another one."""

    root: Path
    ways: dict[str, int] = field(default_factory=dict)

    def undisturbed(self) -> str:
        prepare(self.root)
        self.earlier, folder = self.root / "earlier", self.root / "search"
        self.earlier.mkdir()
        require_done(run([*SEARCH, *EARLIER], self.earlier), self.earlier)
        shutil.copytree(self.earlier, folder)
        line = [*SEARCH, *ASKED, "--overwrite"]
        self.takes = require_done(run(line, folder, 0), folder).seconds
        self.places, self.whole = places(folder), plain(contents(folder))
        return f"{len(self.whole)} files, {self.places} places to be killed at"

    def once(self, folder: Path, draw: random.Random, number: int) -> list[str]:
        shutil.copytree(self.earlier, folder)
        line = [*SEARCH, *ASKED, "--overwrite"]
        if number % 2:
            # half of the kills while the earlier answer goes: there are few such places
            last = 12 if number % 4 == 1 else self.places
            ended = run(line, folder, draw.randint(1, last))
        else:
            ended = run(line, folder, after=draw.random() * self.takes)
        way = "again with --overwrite" if number % 3 == 0 else "again without"
        if number % 3:
            again = run(line[:-1], folder)
            if again.code == 2:
                plan = (folder / "out" / "studies" / "search.json").read_text(encoding="utf-8")
                if json.loads(plan)["about"]["bound"] != "50 %":
                    return ["refused, though the folder is that of the question"]
                way = "refused, then --overwrite"
                again = run(line, folder)
        else:
            again = run(line, folder)
        self.ways[way] = self.ways.get(way, 0) + (ended.code is None)
        if again.code:
            log = folder.with_name(f"{folder.name}.log.txt").read_text(encoding="utf-8")
            return [f"exit code {again.code}: {log.splitlines()[-1]}"]
        wrong = differences(self.whole, plain(contents(folder)))
        return wrong if ended.code is None else [*wrong, NOT_KILLED]


@dataclass
class Studying:
    """A study whose file is changed."""

    root: Path
    ways: dict[str, int] = field(default_factory=dict)

    def undisturbed(self) -> str:
        folder = self.root / "study"
        folder.mkdir()
        self._write(folder, PROBES)
        require_done(run(STUDY, folder, 0), folder)
        self.before = places(folder)
        self._write(folder, CHANGED)
        folder.with_name("study.places").unlink()
        require_done(run([*STUDY, "--update"], folder, 0), folder)
        self.places, self.whole = places(folder), self._left(folder)
        return f"{len(self.whole)} files, {self.before} and {self.places} places to be killed at"

    def once(self, folder: Path, draw: random.Random, number: int) -> list[str]:
        folder.mkdir()
        self._write(folder, PROBES)
        log = folder.with_name(f"{folder.name}.places")
        first = run(STUDY, folder, draw.randint(1, self.before))
        log.unlink(missing_ok=True)
        self._write(folder, CHANGED)
        second = run([*STUDY, "--update"], folder, draw.randint(1, self.places))
        kills = sum(end.code is None for end in (first, second))
        self.ways[f"killed {kills} ×"] = self.ways.get(f"killed {kills} ×", 0) + 1
        again = run([*STUDY, "--update"], folder)
        if again.code:
            return [f"exit code {again.code}"]
        wrong = differences(self.whole, self._left(folder))
        # what is left of runs that only the earlier file asks for stays: it may be put back
        keys = {path.parts[0] for path in map(Path, self.whole)}
        left = [
            path
            for name in ("claims", "work")
            for path in (folder / "out" / name).glob("*")
            if path.name[:16] in keys
        ]
        return [*wrong, *(f"{path} is left" for path in left), *([] if kills else [NOT_KILLED])]

    def _write(self, folder: Path, data: dict[str, Any]) -> None:
        (folder / "study.json").write_text(json.dumps(data), encoding="utf-8")

    def _left(self, folder: Path) -> dict[str, Any]:
        """What the changed file asks for: its runs, and their table."""
        study = hc.study(folder / "study.json", folder / "out")
        rows = study.table().rows
        table = [{name: repr(row[name]) for name in row if name != "seconds"} for row in rows]
        keys = set(study.planned.by_key)
        files = contents(folder / "out" / "runs")
        return {"table": table} | {n: e for n, e in files.items() if Path(n).parts[0] in keys}


KINDS: dict[str, Callable[[Path], Search | Studying]] = {"search": Search, "study": Studying}


def main() -> int:
    """Kill, compare, and say what was found."""
    parser = argparse.ArgumentParser(description="Kill work on a changed question.")
    parser.add_argument("--kills", type=int, default=40, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, by commas")
    parser.add_argument("--keep", type=Path, help="leave all folders there")
    options = parser.parse_args()
    root = options.keep or Path(tempfile.mkdtemp(prefix="headcount-kills-"))
    wrong = 0
    try:
        for name in options.only.split(","):
            (root / name).mkdir(parents=True)
            kind, draw = KINDS[name](root / name), random.Random(options.seed)
            print(f"{name} undisturbed: {kind.undisturbed()}", flush=True)
            same = turns = 0
            while same + wrong < options.kills and turns < 3 * options.kills:
                folder = root / name / f"turn-{turns}"
                problems = kind.once(folder, draw, turns)
                turns += 1
                if problems == [NOT_KILLED]:
                    continue
                same, wrong = same + (not problems), wrong + bool(problems)
                print(f"{name}, turn {turns}: {'; '.join(problems) or 'the same'}", flush=True)
                if not problems and options.keep is None:
                    shutil.rmtree(folder)
            ways = ", ".join(f"{way}: {count}" for way, count in sorted(kind.ways.items()))
            print(f"{name}: {same} of {options.kills} the same ({ways})", flush=True)
            wrong += same < options.kills and not wrong
    finally:
        if options.keep is None and not wrong:
            shutil.rmtree(root, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
