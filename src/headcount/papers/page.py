"""`docs/reproduction.md`, made from records: every claim and every item, by scale.

Nothing in it is typed by hand: numbers come from the runs, the papers' own from `data/numbers/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headcount.base.errors import NotFoundError
from headcount.base.files import expanded, whole
from headcount.papers.claims import Verdict
from headcount.papers.items import read_items
from headcount.papers.numbers import PAPERS, read_paper
from headcount.papers.opening import opening
from headcount.papers.power import Outlook, outlooks
from headcount.papers.reproduce import (
    ReproducedItem,
    command_of,
    count_verdicts,
    draw_items,
    existing_folders,
    judge_all,
    open_folder,
    slug,
)
from headcount.papers.scales import DataPaths, read_written_scale
from headcount.papers.sheets import markdown_line
from headcount.papers.tables import counts_line
from headcount.views.figures import save_figure

COLUMNS = (
    "claim",
    "it says",
    "scale",
    "verdict",
    "value [95 %]",
    "threshold",
    "statistic",
    "n",
    "seeds",
    "command",
)
MOST = 14
"""Rows of a table that are shown; the rest is in the item's files."""
TESTED = 20
"""Statistics of a claim that are shown; `headcount claims --json` has all."""
LARGE = 60_000
"""Bytes of the largest figure that goes into the page's folder."""
INTRO = """# Reproduction

Every table and figure of four papers by one command each, and a verdict for every claim. \
**This page is generated** (`headcount reproduce --write-docs docs/reproduction.md`): its numbers \
come from the records of runs, the papers' own from data files with the cell that they stand in.

Verdicts: *holds* and *does not hold* where the 95 % interval of the statistic lies on one side of \
the threshold, *undecided* where it includes both sides, *not run* where a run is missing. A \
threshold marked † is ours, where a paper says only “high” or “similar”. Where no seeds are named \
everything was drawn once, with seed 0, and the interval is over heads or layers."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page that was written."""

    path: Path
    counts: Mapping[str, int]
    """Verdict -> claims, of all scales."""
    figures: int

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {"path": str(self.path), "counts": dict(self.counts), "figures": self.figures}


def write_page(
    path: str | Path, folders: Sequence[str | Path], paths: DataPaths | None = None
) -> Page:
    """Write the page from the runs in some folders, `reproduce/*` where none is named."""
    path = Path(path)
    folders = [expanded(folder) for folder in folders] or existing_folders()
    if not folders:
        raise NotFoundError(
            "There are no runs to write about: headcount reproduce --all makes them."
        )
    opened = [open_folder(folder, paths) for folder in folders]
    items = list(read_items().values())
    drawn = [
        (result, _save_figures(result, path.parent / path.stem))
        for scale, finished in opened
        for result in draw_items(finished, scale, items)
    ]
    verdicts = judge_all(opened)
    parts = [INTRO, *opening(verdicts, path.parent / path.stem)]
    parts += [*(_scale(scale, verdicts) for scale, _ in opened), _claims(verdicts)]
    parts += [*_power(outlooks(opened)), _why(verdicts)]
    for paper in PAPERS:
        about = read_paper(paper)
        parts.append(f"## {about.title} ({about.venue} {about.year})")
        for item in (item for item in items if item.paper == paper):
            claims = ", ".join(item.claims) or "none"
            parts.append(f"### {paper} {item.name}\n\n{item.what}. Claims: {claims}.")
            for result, figures in drawn:
                parts += _item(result, figures, path.stem) if result.item is item else []
    with whole(path) as partial:
        partial.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    count = len(PAPERS) + sum(len(figures) for _, figures in drawn)
    return Page(path=path, counts=count_verdicts(verdicts), figures=count)


def _scale(scale: str, verdicts: Iterable[Verdict]) -> str:
    about = " ".join(read_written_scale(scale).data.get("about", "").split())
    counts = count_verdicts(verdict for verdict in verdicts if verdict.scale == scale)
    return f"**Scale `{scale}`**: {about} Claims: {counts_line(counts)}."


def _claims(verdicts: Sequence[Verdict]) -> str:
    """One table of all claims, a line for each scale that has run them."""
    rows: list[list[str]] = [[*COLUMNS], ["---"] * len(COLUMNS)]
    for verdict in verdicts:
        claim = verdict.claim
        value = n = seeds = ""
        for first in verdict.tested[:1]:
            value = first.interval
            n = f"{first.n} {first.of}".strip() if first.n else ""
            seeds = str(first.seeds) if first.seeds else ""
        threshold = claim.threshold + (" †" if claim.origin == "ours" else "")
        paper, _, item = claim.items[0].partition("/")
        command = f"`{command_of(paper, item, verdict.scale)}`"
        judged = [verdict.scale, f"**{verdict.word}**", value, threshold, claim.statistic]
        rows.append([claim.code, claim.says, *judged, n, seeds, command])
    return "\n".join(["## Claims\n", *map(markdown_line, rows)])


def _power(undecided: Sequence[Outlook]) -> list[str]:
    """What would decide the claims that are undecided; nothing where none is."""
    rows = [["claim", "scale", "points to", "by", "takes"], ["---"] * 5]
    for outlook in undecided:
        statistic, claim = outlook.need.statistic, outlook.verdict.claim
        by = f"{statistic.what}: {statistic.interval}"
        rows.append([claim.code, outlook.verdict.scale, outlook.need.word, by, outlook.text])
    about = (
        "### What would decide the undecided\n\nIf the effect and the spread that were seen are "
        "the true ones: the least with which the interval lies on one side of the threshold in "
        "80 % of repetitions (`headcount claims --power`), and the hours of one run at a time, by "
        "the durations in the records; at most, as they are of all groups that the claim names."
    )
    return [about, "\n".join(map(markdown_line, rows))] if undecided else []


def _why(verdicts: Sequence[Verdict]) -> str:
    """What else was tested of every claim, and what a reader must not miss."""
    lines = ["### Behind the verdicts\n"]
    for verdict in (verdict for verdict in verdicts if verdict.tested):
        claim = verdict.claim
        read = f" Two readings: {claim.ambiguous}" if claim.ambiguous else ""
        lines.append(f"- **{claim.code}**, {verdict.scale} (section {claim.section}).{read}")
        for one in verdict.tested[:TESTED]:
            note = f" ({one.note})" if one.note else ""
            lines.append(f"    - {one.what}: {one.interval}, {one.verdict}{note}")
        if (left := len(verdict.tested) - TESTED) > 0:
            lines.append(f"    - {left} more: `headcount claims --json`")
    return "\n".join(lines)


def _save_figures(result: ReproducedItem, folder: Path) -> list[str]:
    """The names of an item's figures that are small enough, saved in a folder beside the page."""
    names = []
    for title, figure in ({} if result.drawn is None else result.drawn.figures).items():
        end = f"-{slug(title)}" if title else ""
        name = f"{result.scale}-{result.item.paper}-{result.item.name}{end}.svg"
        saved = save_figure(figure, folder / name)
        if saved.stat().st_size > LARGE:
            saved.unlink()
        else:
            names.append(name)
    return names


def _item(result: ReproducedItem, figures: Sequence[str], stem: str) -> list[str]:
    parts = [f"`{result.command}`"]
    if result.drawn is None:
        return [*parts, f"Not run: {result.done} of {result.total} runs are done."]
    for sheet in result.drawn.sheets:
        left = len(sheet.rows) - MOST
        small = replace(sheet, title=f"{sheet.title} ({result.scale})", rows=sheet.rows[:MOST])
        more = f"\n\n{left} rows more in its files." if left > 0 else ""
        parts.append(small.to_markdown() + more)
    parts += result.drawn.notes
    return [*parts, *(f"![{result.item.what}, {result.scale}]({stem}/{name})" for name in figures)]
