"""Commands killed with `kill -9` at drawn moments, and started again until they are done.

    python benchmarks/coverage/kills.py [--kills 200] [--seed 0] [--only train,curve]
        [--keep FOLDER]

What they leave must be what an undisturbed run leaves: the same files, the same weights, scores and
learning curves, figures too, and nothing besides. Every command is run once undisturbed; then they
take turns. A command is killed up to four times, each time after a drawn share of the processor
time that the undisturbed run took, and then left alone. Times, and from where a run went on, are no
part of what is compared; of figures it is only that they are there.

The commands run in copies of this process, so that kills hit the work and not the imports.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}

import numpy as np
import pyarrow.parquet as parquet

from headcount.cli.main import main as headcount_main
from headcount.tasks import open_task

ROWS = {"train": 96, "dev": 64}
MOST = 4
"""Kills of one run before it is left alone."""
VOLATILE = {"seconds", "resumed_from", "versions", "sum"}
FIGURES = {".png", ".svg"}

TASK = ["--task", "classification", "--data", "../data", "--columns", "text", "--label", "label"]
TRAIN = ["--preset", "pocket", "--batch-size", "16", "--log-every", "4", "--save-every", "3"]
SHORT = [*TRAIN, "--steps", "10"]
GATES = ["--gate-lr", "0.5", "--bootstrap", "50"]
COMMANDS: dict[str, list[str]] = {
    "train": ["train", "pocket", *TASK, *TRAIN, "--epochs", "4", "--curve-scores"],
    "redundancy": [
        "redundancy", "../base", "--random", "600", "--max-length", "32",
        "--distances", "js", "--figure", "heads.svg",
    ],
    "gates": [
        "prune", "../base", "--method", "straight-through", "--ratio", "0.5", *TASK, *SHORT, *GATES,
        "--score-points", "4", "--score-rows", "16", "--baseline", "1",
    ],
    "prune": [
        "prune", "../base", "--method", "importance", "--ratio", "0.5", *TASK, *SHORT,
        "--finetune", "--baseline", "1", "--bootstrap", "50",
    ],
    "curve": [
        "curve", "../base", *TASK, *SHORT, "--methods", "random,importance", "--seeds", "2",
        "--ratios", "0.25,0.5", "--finetune", "--bootstrap", "50",
    ],
    "compare": [
        "compare", "../base", *TASK, *SHORT, "--methods", "random,straight-through", "--seeds", "2",
        *GATES,
    ],
    "sweep": [
        "sweep", "../base", *TASK, *SHORT, "--over", "gate-lr=0.1,0.5", "--seeds", "2",
        "--bootstrap", "50",
    ],
}  # fmt: skip
"""What is run, in a folder of its own beside `base` and `data`; --out is added."""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int | None
    """Its exit code; None when it was killed."""
    seconds: float
    """Processor time."""


def launch(line: list[str], folder: Path, after: float | None = None) -> Ended:
    """Run a command in a copy of this process; kill it after so much processor time."""
    pid = os.fork()
    if pid == 0:
        _become(line, folder)
    while after is not None:
        time.sleep(0.004)
        done, status, used = os.wait4(pid, os.WNOHANG)
        if done:
            return Ended(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime)
        if _processor_time(pid) >= after:
            os.kill(pid, signal.SIGKILL)
            break
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return Ended(None if code == -signal.SIGKILL else code, used.ru_utime + used.ru_stime)


def _become(line: list[str], folder: Path) -> None:
    """Be the command, in its folder; never returns."""
    code = 1
    try:
        log = os.open(_log(folder), os.O_CREAT | os.O_APPEND | os.O_RDWR)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(folder)
        sys.argv = ["headcount", *line]  # the record says how it was called
        code = headcount_main(line)
    finally:
        sys.stdout.flush()
        os._exit(code)


def _log(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.log.txt")


def _processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def line_of(name: str) -> list[str]:
    """The whole command line."""
    return [*COMMANDS[name], "--out", "out.npz" if name == "redundancy" else "out"]


def contents(folder: Path) -> dict[str, Any]:
    """Every file by its name, as what is compared of it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): _content(path) for path in files}


def _content(path: Path) -> Any:
    if path.suffix in FIGURES:
        return "a figure"
    if path.suffix == ".json":
        return _steady(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix == ".jsonl":  # the curve of a training
        lines = path.read_text(encoding="utf-8").splitlines()
        return [_steady(json.loads(line)) for line in lines]
    if path.suffix == ".parquet":
        return _steady(parquet.read_table(path).to_pylist())
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return {name: (value.dtype.str, value.tobytes()) for name, value in arrays.items()}
    return path.read_bytes()


def _steady(value: Any) -> Any:
    """A nest without what differs between any two runs."""
    if isinstance(value, dict):
        return {key: _steady(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [_steady(item) for item in value]
    return repr(value) if isinstance(value, float) else value  # NaN is like NaN


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What is missing, left over or different, by file."""
    problems = [f"{name} is missing" for name in one if name not in other]
    problems += [f"{name} is left over" for name in other if name not in one]
    return problems + [
        f"{name} differs" for name in one if name in other and one[name] != other[name]
    ]


def prepare(root: Path) -> None:
    """Rows as files, and a model that was trained on them."""
    task = open_task("pocket-sentiment")
    (root / "data").mkdir()
    for split, count in ROWS.items():
        rows = task.load(split, limit=count)
        assert rows.labels is not None
        lines = [
            json.dumps({"text": text, "label": task.labels[label]})
            for text, label in zip(rows.texts[0], rows.labels, strict=True)
        ]
        (root / "data" / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (root / "start").mkdir()
    ended = launch(["train", "pocket", *TASK, *TRAIN, "--out", "../base"], root / "start")
    if ended.code:
        raise SystemExit(_log(root / "start").read_text(encoding="utf-8"))


def one_turn(name: str, folder: Path, takes: float, shares: list[float]) -> tuple[list[float], str]:
    """Run, kill, and start again until it is done: where it was killed, and why it gave up."""
    folder.mkdir()
    killed: list[float] = []
    for share in [*shares, None]:
        ended = launch(line_of(name), folder, None if share is None else share * takes)
        if ended.code is None and share is not None:
            killed.append(share)
        elif ended.code:
            return killed, f"stuck: {_log(folder).read_text(encoding='utf-8').splitlines()[-1]}"
        else:
            break
    return killed, ""


def main() -> int:
    """Kill, compare, and say what was found."""
    parser = argparse.ArgumentParser(description="Kill commands and see whether they recover.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(COMMANDS), help="commands, by commas")
    parser.add_argument("--keep", type=Path, help="leave all folders there")
    options = parser.parse_args()
    names = options.only.split(",")
    root = options.keep or Path(tempfile.mkdtemp(prefix="headcount-kills-"))
    root.mkdir(parents=True, exist_ok=True)
    draw = random.Random(options.seed)
    kills = turns = wrong = 0
    try:
        prepare(root)
        whole: dict[str, Any] = {}
        takes: dict[str, float] = {}
        for name in names:
            (root / name).mkdir()
            ended = launch(line_of(name), root / name)
            if ended.code:
                raise SystemExit(_log(root / name).read_text(encoding="utf-8"))
            whole[name], takes[name] = contents(root / name), ended.seconds
            print(f"{name} undisturbed: {ended.seconds:.1f} s, {len(whole[name])} files")
        while kills < options.kills:
            name = names[turns % len(names)]
            turns += 1
            folder = root / f"{name}-{turns}"
            drawn = [draw.random() for _ in range(min(MOST, options.kills - kills))]
            at, stuck = one_turn(name, folder, takes[name], drawn)
            problems = [stuck] if stuck else differences(whole[name], contents(folder))
            kills += max(1, len(at)) if stuck else len(at)
            wrong += bool(problems)
            shares = ", ".join(f"{share:.0%}" for share in at) or "nowhere"
            print(f"{name}, killed at {shares}: {'; '.join(problems) or 'the same'}", flush=True)
            if not problems and options.keep is None:
                shutil.rmtree(folder)
    finally:
        if options.keep is None:
            shutil.rmtree(root, ignore_errors=True)
    print(f"{kills} kills in {turns} runs of {len(names)} commands: {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
