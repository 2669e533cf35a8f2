"""`headcount demo`: the main job on the shipped model, offline, each command shown first."""

from __future__ import annotations

import shlex
from pathlib import Path

from headcount.cli import groups
from headcount.cli.common import say, warn
from headcount.cli.drawing import can_draw
from headcount.files import read_json, whole
from headcount.report.demo import page, summary

TASK = "--task pocket-paraphrase --preset pocket"
CUT = f"--ratio 0.5 {TASK} --finetune --epochs 1 --baseline 0"
STEPS = (
    "inspect pocket",
    f"train pocket {TASK} --out {{out}}/full",
    "redundancy {out}/full --random 200 --out {out}/heads.npz {figure}",
    f"prune {{out}}/full --method random {CUT} --out {{out}}/random",
    f"prune {{out}}/full --method cluster --redundancy {{out}}/heads.npz {CUT} --out {{out}}/small",
    "bench {out}/full {out}/small --batch 8 --length 32 --no-onnx",
)
CUTS = ("random", "small")


def demo(*, out: groups.NewFolder = Path("demo")) -> int:
    """Fine-tune the pocket model, remove half of its heads in two ways, and compare."""
    from headcount.cli.main import main

    figure = can_draw()
    out.mkdir(parents=True, exist_ok=True)
    drawn = "--figure {out}/heads.png" if figure else ""
    steps = [shlex.split(step.replace("{figure}", drawn)) for step in STEPS]
    commands = [[word.format(out=out) for word in step] for step in steps]
    for words in commands:
        say(f"\n$ headcount {shlex.join(words)}")
        code = main(words)
        if code:
            warn(f"The demo stopped at: headcount {shlex.join(words)}")
            return code
    text = summary(*(read_json(out / name / "record.json", "record") for name in CUTS))
    said = [f"headcount {shlex.join(words)}" for words in commands]
    with whole(out / "report.md") as partial:
        partial.write_text(page(text, said, figure=figure), encoding="utf-8")
    say(f"\n{text}\n\nDone. The report is {out / 'report.md'}, the smaller model {out / 'small'}.")
    return 0
