"""Are the numbers the same after a change of the code? Run before it, run after it, compare.

    python tools/same_numbers.py run BEFORE              # a dozen commands on the pocket model
    python tools/same_numbers.py compare BEFORE AFTER    # 1 where a number of BEFORE is missing

Names may change with the code, numbers may not: every float that a command printed before must be
printed after, to the last bit. Times, and what is computed from them, are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TASK = "--task pocket-sentiment --limit 200"
COMMANDS = {
    "train": "train pocket --task pocket-sentiment --preset pocket --steps 60 --out {}/model",
    "importance": "importance {}/model --task pocket-sentiment --calibration-samples 128",
    "redundancy": "redundancy pocket --random 16",
    "prune-importance": "prune {}/model --method importance --ratio 0.5 " + TASK,
    "prune-surgeon": "prune {}/model --method surgeon --ratio 0.5 " + TASK,
    "prune-cluster": "prune {}/model --method cluster --ratio 0.5 " + TASK,
    "prune-recover": "prune {}/model --method importance --ratio 0.5 --recover " + TASK,
    "prune-gates": (
        "prune {}/model --method straight-through --ratio 0.5 --finetune --preset pocket "
        "--steps 60 --baseline 0 " + TASK
    ),
    "curve": "curve {}/model --methods random,importance --ratios 0.25,0.5 --seeds 2 " + TASK,
    "compare": (
        "compare {}/model --methods random,importance --ratio 0.5 --seeds 2 --preset pocket "
        "--steps 20 " + TASK
    ),
    "search": "search {}/model --max-drop 5% --seeds 1 --no-bench " + TASK,
    "figure-3": "reproduce redundancy figure-3",
    "table-5": "reproduce weak-link table-5",
}
TIMES = ("seconds", "time", "timing", "hours", "speed", "versions", "milliseconds")


def run(folder: Path) -> None:
    """Every command, its --json output in a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT / "src")}
    for name, line in COMMANDS.items():
        command = [*line.format(folder).split(), "--json"]
        if "--out" not in command and name not in ("importance", "redundancy"):
            command += ["--out", str(folder / name)]
        print(f"headcount {' '.join(command)}", flush=True)
        program = [sys.executable, "-m", "headcount", *command]
        done = subprocess.run(program, capture_output=True, text=True, env=env, check=False)
        if done.returncode not in (0, 6):
            sys.exit(done.stderr)
        (folder / f"{name}.json").write_text(done.stdout, encoding="utf-8")


def floats(data: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every float and where it stands, without times."""
    if isinstance(data, dict):
        for key, value in data.items():
            if not any(word in str(key) for word in TIMES):
                yield from floats(value, f"{path}.{key}")
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from floats(value, f"{path}[{number}]")
    elif isinstance(data, float):
        yield path, data


def compare(before: Path, after: Path) -> int:
    """Print what is missing; 1 where anything is."""
    lost = 0
    for name in COMMANDS:
        old, new = (json.loads((each / f"{name}.json").read_text()) for each in (before, after))
        left = Counter(value for _, value in floats(new))
        missing = []
        for path, value in floats(old):
            if left[value] > 0:
                left[value] -= 1
            else:
                missing.append(f"{path} = {value!r}")
        lost += len(missing)
        total = sum(1 for _ in floats(old))
        print(
            f"{name:18} {total - len(missing):>6} of {total} the same", *missing[:12], sep="\n    "
        )
    return int(bool(lost))


if __name__ == "__main__":
    verb, *paths = sys.argv[1:]
    sys.exit(run(Path(paths[0])) if verb == "run" else compare(*map(Path, paths)))
