"""The source in numbers, held to what docs/design.md promises: `python tools/count.py [--run]`.

Lines, `Any`, class names with two meanings, plain names of the ban list, `# fmt: skip`; with
`--run` also how many source files run in three commands on the pocket model, and the whole forward
passes of one prune.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "headcount"
BANNED = frozenset(
    ["found", "own", "each", "told", "said", "how", "asked", "made", "place", "there"]
)
"""Words that say nothing about the value: name the thing instead."""
GOALS = {
    "source lines": 46_500,
    "Any": 700,
    "class names with two meanings": 0,
    "plain names of the ban list": 0,
    "fmt: skip": 40,
    "files that run in evaluate": 40,
    "files that run in redundancy": 45,
    "files that run in prune": 75,
    "forward passes of prune": 33,
}
"""At most."""
PRUNE = (
    "--method importance --recover --ratio 0.5 --limit 100 --calibration-samples 64 --out {}/small"
)
COMMANDS = {
    "evaluate": "evaluate {model} --task pocket-sentiment --limit 100",
    "redundancy": "redundancy {model} --random 8 --distances js",
    "prune": "prune {model} --task pocket-sentiment " + PRUNE,
}
TRACE = """
import json, sys
from pathlib import Path
files, passes = set(), 0
def trace(frame, event, _):
    files.add(frame.f_code.co_filename)
sys.setprofile(trace)
from headcount.cli.main import main
import torch
from transformers import PreTrainedModel
def count(module, args, output):
    global passes
    passes += isinstance(module, PreTrainedModel) and module.__class__.__name__.endswith("Model")
torch.nn.modules.module.register_module_forward_hook(count)
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
sys.setprofile(None)
used = sorted(name for name in files if "/headcount/" in name and name.endswith(".py"))
print(json.dumps({"code": code, "files": len(used), "passes": passes}), file=sys.stderr)
"""


def banned_names(tree: ast.AST) -> list[str]:
    """Names of the ban list that are bound somewhere: variables and parameters."""
    bound = [
        node.arg if isinstance(node, ast.arg) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and _stored(node))
    ]
    return [name for name in bound if name in BANNED]


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def count_source(folder: Path = SOURCE) -> dict[str, int]:
    """What can be counted by reading."""
    counts, classes = Counter[str](), Counter[str]()
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        counts["source lines"] += text.count("\n")
        counts["fmt: skip"] += text.count("# fmt: skip")
        counts["plain names of the ban list"] += len(banned_names(tree))
        for node in ast.walk(tree):
            counts["Any"] += isinstance(node, ast.Name) and node.id == "Any"
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name] += 1
    counts["class names with two meanings"] = sum(number > 1 for number in classes.values())
    return dict(counts)


def count_running() -> dict[str, int]:
    """How many source files run in three commands, and the forward passes of one prune."""
    counts: dict[str, int] = {}
    quiet = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        train = f"train pocket --task pocket-sentiment --steps 20 --rows 200 --out {model}"
        subprocess.run([sys.executable, "-m", "headcount", *train.split()], check=True, env=quiet)
        for name, line in COMMANDS.items():
            arguments = line.format(folder, model=model).split()
            done = subprocess.run(
                [sys.executable, "-c", TRACE, *arguments],
                capture_output=True, text=True, env=quiet, check=True,
            )  # fmt: skip
            result = json.loads(done.stderr.splitlines()[-1])
            assert result["code"] in (0, None), done.stderr
            counts[f"files that run in {name}"] = result["files"]
            counts[f"forward passes of {name}"] = result["passes"]
    return {name: number for name, number in counts.items() if name in GOALS}


def main() -> int:
    """Print every number beside its goal; 1 where one is missed."""
    parser = argparse.ArgumentParser(prog="python tools/count.py")
    parser.add_argument("--run", action="store_true", help="also what runs in three commands")
    counts = count_source() | (count_running() if parser.parse_args().run else {})
    for name, number in counts.items():
        print(f"{name:32} {number:>7,}  (at most {GOALS[name]:,})")
    missed = [name for name, number in counts.items() if number > GOALS[name]]
    print(f"missed: {', '.join(missed)}" if missed else "all within")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
