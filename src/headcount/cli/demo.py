"""`headcount demo`: the main job on the shipped model, offline, each command shown first."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from headcount.cli.common import say
from headcount.cli.drawing import can_draw
from headcount.files import whole
from headcount.report.tables.amounts import parameters

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
REPORT = """# The demo's report

The pocket BERT, fine-tuned on `pocket-paraphrase`, lost half of its heads twice: at random, and by
clustering heads that attend alike. Both were trained for one more epoch. Intervals are 95 %.

{table}
{picture}
Every step again:

```sh
{commands}
```
"""
PICTURE = "\n![Distances between the heads](heads.png)\n"


def demo(*, out: Path = Path("demo")) -> int:
    """Fine-tune the pocket model, remove half of its heads in two ways, and compare.

    Parameters
    ----------
    out
        The folder to write; it must be new or empty.
    """
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
            say(f"headcount: The demo stopped at: headcount {shlex.join(words)}")
            return code
    records = [json.loads((out / name / "record.json").read_text()) for name in ("random", "small")]
    text = summary(*records)
    said = "\n".join(f"headcount {shlex.join(words)}" for words in commands)
    picture = PICTURE if figure else ""
    with whole(out / "report.md") as partial:
        report = REPORT.format(table=text, picture=picture, commands=said)
        partial.write_text(report, encoding="utf-8")
    say(f"\n{text}\n\nDone. The report is {out / 'report.md'}, the smaller model {out / 'small'}.")
    return 0


def summary(random: dict[str, Any], cluster: dict[str, Any]) -> str:
    """Before and after, as a Markdown table."""
    rows = [("", "heads", "parameters", random["scores"]["metric"], "interval")]
    for name, record, when in (
        ("all heads", random, "before"),
        ("half at random", random, "after"),
        ("half by cluster", cluster, "after"),
    ):
        score = record["scores"][when]
        interval = f"{score['low']:.3f} to {score['high']:.3f}"
        count = parameters(record["parameters"][when])
        rows.append((name, str(record["heads"][when]), count, f"{score['score']:.3f}", interval))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])
