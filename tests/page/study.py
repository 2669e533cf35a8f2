"""A whole study as commands: what a page of a fine-tuned model is made from.

python tests/page/study.py FOLDER        # the pocket model, about a quarter of an hour on one core

The tests run the same commands with a model that is there already and few rows.
"""

from __future__ import annotations

import sys
from pathlib import Path

TASK = ("--task", "pocket-acceptability")
TEXT = "the teacher near the girls follows the old king and the dog sleeps ."


def commands(folder: Path, model: str | None = None, *, small: bool = False) -> list[list[str]]:
    """The command lines, in their order; without a `model` one is fine-tuned first."""
    base = str(folder / "base") if model is None else model
    to = lambda name: ["--out", str(folder / name)]  # noqa: E731
    few = ["--limit", "40", "--calibration-samples", "16"] if small else []
    seeds = ["--seeds", "1" if small else "3"]
    steps = ["--steps", "4", "--batch-size", "8"] if small else ["--steps", "200"]
    distances = "js,cos" if small else "all"
    random = ["--random", "8" if small else "200"]
    ratios = ["--ratios", "0.5,0.75"] if small else []
    methods = ["--methods", "random,importance" if small else "random,cluster,importance,surgeon"]
    alone = [] if small else ["--alone", "--limit", "300", "--time"]
    train = ["train", "pocket", *TASK, "--preset", "pocket", *to("base")]
    compared = "random,importance" if small else "all-heads,random,importance,straight-through"
    return [
        *([train] if model is None else []),
        ["redundancy", base, *random, "--distances", distances, *to("random.npz")],
        ["redundancy", base, *TASK, *few[2:], "--distances", "js", *to("task.npz")],
        ["importance", base, *TASK, *few[2:], *to("importance.json")],
        ["prune", base, "--ratio", "0.5", *TASK, *few, "--baseline", "1", *to("pruned")],
        ["prune", base, "--ratio", "0.5", "--method", "straight-through", *TASK, *few, *steps,
         "--baseline", "0", *to("gated")],
        ["curve", base, *TASK, *methods, *ratios, *seeds, *few, *to("curve")],
        ["curve", base, *TASK, "--methods", "random,surgeon", "--ratios", "0.25,0.5,0.75", *seeds,
         *few, "--recover", *to("recovered")],
        ["compare", base, *TASK, "--methods", compared, *seeds, *steps, *few, *to("compare")],
        ["transfer", "pocket" if model is None else base, base, *TASK, *few[2:], *to("transfer")],
        ["attention", base, str(folder / "pruned"), "--text", TEXT, *to("attention")],
        ["roles", base, str(folder / "pruned"), *TASK, *few[2:], *alone, *to("roles.json")],
        ["sweep", base, *TASK, "--over", "mu=0.001,0.1", "--seeds", seeds[1], *steps, *few[:2],
         *to("sweep")],
        ["report", str(folder), "--out", str(folder / "report.html")],
    ]  # fmt: skip


if __name__ == "__main__":
    from headcount.cli.main import main

    for line in commands(Path(sys.argv[1])):
        print("headcount", *line)  # noqa: T201
        if code := main(line):
            sys.exit(code)
