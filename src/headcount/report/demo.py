"""The demo's report, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount.report.tables.amounts import parameters

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


def page(table: str, commands: Sequence[str], *, figure: bool) -> str:
    """The report: what came out, and how it was made."""
    picture = PICTURE if figure else ""
    return REPORT.format(table=table, picture=picture, commands="\n".join(commands))


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
