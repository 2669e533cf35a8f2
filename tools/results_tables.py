"""The tables and the picture of docs/results.md, from the summary of a study.

    headcount study table heads-only.yaml --json > table.json
    python tools/results_tables.py table.json docs/pictures/results.svg

It prints a table for each group of runs: methods by the share of heads that are gone, with the
score, and below it the interval of its difference from all heads on the same rows (over rows; of
random heads over seeds).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headcount.base.text import minus
from headcount.views.figures import COLOURS, colour_of, new_figure, save_figure, styled

Row = Mapping[str, Any]
RANDOM = "-random"
"""The ending of a group that has as many heads drawn at random as the group of its name."""


def sections(summary: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each group and task, random heads with those that they are compared with."""
    found: dict[str, list[Row]] = {}
    for row in summary:
        if row["kind"] == "prune" and row.get("score") is not None:
            name = f"{row['group'].removesuffix(RANDOM)} {row.get('task') or ''}".strip()
            found.setdefault(name, []).append(row)
    return found


def by_method(rows: Sequence[Row]) -> dict[str, dict[float, Row]]:
    """The rows of each method by their ratio; the best with half of the heads comes first."""
    methods: dict[str, dict[float, Row]] = {}
    for row in rows:
        methods.setdefault(row["method"], {})[row["ratio"]] = row
    return dict(sorted(methods.items(), key=lambda item: -item[1].get(0.5, {"score": 0})["score"]))


def cell(row: Row | None) -> str:
    """A score, and the interval of its difference from all heads.

    >>> cell({"score": 0.86706, "difference.low": -0.0014, "difference.high": 0.0162})
    '0.867<br>[−0.001, +0.016]'
    """
    if row is None:
        return ""
    text = f"{row['score']:.3f}"
    if row.get("difference.low") is not None:
        text += f"<br>[{row['difference.low']:+.3f}, {row['difference.high']:+.3f}]"
    return minus(re.sub(r"[+-](?=0\.0+\b)", "", text))  # nothing has no sign


def markdown(name: str, rows: Sequence[Row]) -> str:
    """One group as a table."""
    first, methods = rows[0], by_method(rows)
    ratios = sorted({row["ratio"] for row in rows})
    kept = {row["ratio"]: row["kept"] for row in rows}
    lines = [
        f"**{name}**: {first['metric']} on {first['n']} rows, all {first['heads']} heads "
        f"{first['full']:.3f}.\n",
        f"| heads gone | {' | '.join(f'{100 * ratio:.0f} %' for ratio in ratios)} |",
        f"|---|{'---|' * len(ratios)}",
        f"| heads kept | {' | '.join(str(kept[ratio]) for ratio in ratios)} |",
    ]
    for method, at in methods.items():
        cells = " | ".join(cell(at.get(ratio)) for ratio in ratios)
        lines.append(f"| {method} | {cells} |")
    return "\n".join(lines) + "\n"


def draw(found: Mapping[str, Sequence[Row]], path: Path) -> None:
    """A panel for each group: score against the share of heads that are gone."""
    names = sorted({row["method"] for rows in found.values() for row in rows} - {"random"})
    with styled():
        figure = new_figure(6.4, 3.6 * len(found))
        for place, (name, rows) in enumerate(found.items(), 1):
            axes = figure.add_subplot(len(found), 1, place)
            axes.axhline(rows[0]["full"], color="#4f4f4f", lw=1, ls=":", label="all heads")
            for method, at in by_method(rows).items():
                x, y = [100 * ratio for ratio in sorted(at)], [at[r]["score"] for r in sorted(at)]
                number = -1 if method == "random" else names.index(method)
                colour = "#9a9a9a" if number < 0 else colour_of(number)
                style = "o--" if number < 0 else "s-" if number >= len(COLOURS) else "o-"
                axes.plot(x, y, style, ms=3, lw=1.4, color=colour, label=method)
            axes.set_title(name)
            axes.set_xlabel("heads removed, %")
            axes.set_ylabel(rows[0]["metric"])
            axes.legend(fontsize=7, frameon=False, ncols=2)
        save_figure(figure, path)


def main(table: Path, picture: Path) -> None:
    """Print the tables, draw the picture."""
    found = sections(json.loads(table.read_text(encoding="utf-8"))["summary"])
    draw(found, picture)
    print("\n".join(markdown(name, rows) for name, rows in found.items()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
