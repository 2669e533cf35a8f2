"""`docs/reproduction.md`, made from records: every claim and every item, by scale.

Nothing in it is typed by hand: numbers come from the runs, the papers' own from `data/numbers/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.base.errors import NotFoundError
from headcount.base.files import expanded, whole
from headcount.papers.claims import Verdict
from headcount.papers.items import read_items
from headcount.papers.numbers import PAPERS, read_paper
from headcount.papers.reproduce import (
    ReproducedItem,
    counted,
    drawn_items,
    existing_folders,
    find_runs,
    judge_all,
    slug,
)
from headcount.papers.scales import DataPaths, read_written_scale
from headcount.papers.sheets import shown
from headcount.papers.tables import interval_of
from headcount.views.figures import save_figure

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

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {"path": str(self.path), "counts": dict(self.counts), "figures": self.figures}


def write_page(
    path: str | Path, folders: Sequence[str | Path], places: DataPaths | None = None
) -> Page:
    """Write the page from the runs in some folders, `reproduce/*` where none is named."""
    path = Path(path)
    there = [expanded(each) for each in folders] or existing_folders()
    if not there:
        raise NotFoundError(
            "There are no runs to write about: headcount reproduce --all makes them."
        )
    found = [find_runs(folder, places) for folder in there]
    items = list(read_items().values())
    made = {scale: drawn_items(each, scale, items) for scale, each in found}
    verdicts = judge_all(found)
    pictures = path.parent / path.stem
    figures = _save_figures(made, pictures)
    parts = [
        INTRO,
        *(_scale(scale, verdicts) for scale in made),
        _claims(verdicts),
        *_why(verdicts),
    ]
    for paper in PAPERS:
        parts += _paper(paper, made, figures, path.stem)
    with whole(path) as partial:
        partial.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return Page(path=path, counts=counted(verdicts), figures=sum(map(len, figures.values())))


def _scale(scale: str, verdicts: Iterable[Verdict]) -> str:
    about = " ".join(read_written_scale(scale).data.get("about", "").split())
    counts = counted(each for each in verdicts if each.scale == scale)
    said = ", ".join(f"{number} {word}" for word, number in counts.items())
    return f"**Scale `{scale}`**: {about} Claims: {said}."


def _claims(verdicts: Sequence[Verdict]) -> str:
    """One table of all claims, a line for each scale that has run them."""
    columns = ("claim", "it says", "scale", "verdict", "value [95 %]", "threshold", "statistic",
               "n", "seeds", "command")  # fmt: skip
    lines = ["## Claims\n", _line(columns), _line("---" for _ in columns)]
    for each in verdicts:
        claim = each.claim
        mark = " †" if claim.origin == "ours" else ""
        first = each.tested[0] if each.tested else None
        value = "" if first is None else interval_of(first.value, first.low, first.high)
        n = "" if first is None or not first.n else f"{first.n} {first.of}".strip()
        seeds = "" if first is None or not first.seeds else str(first.seeds)
        paper, _, item = claim.items[0].partition("/")
        scale = "" if each.scale == "pocket" else f" --scale {each.scale}"
        lines.append(_line((
            claim.code, claim.says, each.scale, f"**{each.word}**", value, claim.threshold + mark,
            claim.statistic, n, seeds, f"`headcount reproduce {paper} {item}{scale}`",
        )))  # fmt: skip
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _why(verdicts: Sequence[Verdict]) -> list[str]:
    """What else was tested of every claim, and what a reader must not miss."""
    lines = ["### Behind the verdicts\n"]
    for each in verdicts:
        if not each.tested:
            continue
        read = f" Two readings: {each.claim.ambiguous}" if each.claim.ambiguous else ""
        lines.append(f"- **{each.claim.code}**, {each.scale} (section {each.claim.section}).{read}")
        lines += [f"    - {_tested(one)}" for one in each.tested[:TESTED]]
        if (left := len(each.tested) - TESTED) > 0:
            lines.append(f"    - {left} more: `headcount claims --json`")
    return ["\n".join(lines)]


def _tested(one: Any) -> str:
    note = f" ({one.note})" if one.note else ""
    return f"{one.what}: {interval_of(one.value, one.low, one.high)}, {one.verdict}{note}"


def _save_figures(
    made: Mapping[str, Sequence[ReproducedItem]], folder: Path
) -> dict[Any, list[str]]:
    """Figures that are small enough, in a folder beside the page; (scale, paper, item) -> names."""
    found: dict[Any, list[str]] = {}
    for scale, each in ((scale, each) for scale, every in made.items() for each in every):
        for title, figure in ({} if each.drawn is None else each.drawn.figures).items():
            end = f"-{slug(title)}" if title else ""
            name = f"{scale}-{each.item.paper}-{each.item.name}{end}.svg"
            saved = save_figure(figure, folder / name)
            if saved.stat().st_size > LARGE:
                saved.unlink()
                continue
            found.setdefault((scale, each.item.paper, each.item.name), []).append(name)
    return found


def _paper(
    paper: str, made: Mapping[str, Sequence[ReproducedItem]], figures: Any, stem: str
) -> list[str]:
    about = read_paper(paper)
    parts = [f"## {about.title} ({about.venue} {about.year})"]
    for name, item in ((name, each) for (of, name), each in read_items().items() if of == paper):
        parts.append(
            f"### {paper} {name}\n\n{item.what}. Claims: {', '.join(item.claims) or 'none'}."
        )
        for scale, every in made.items():
            for each in every:
                if (each.item.paper, each.item.name) == (paper, name):
                    parts += _item(each, figures.get((scale, paper, name), []), stem)
    return parts


def _item(each: ReproducedItem, figures: Sequence[str], stem: str) -> list[str]:
    parts = [f"`{each.command}`"]
    if each.drawn is None:
        return [*parts, f"Not run: {each.done} of {each.total} runs are done."]
    for sheet in each.drawn.sheets:
        rows = sheet.rows[:MOST]
        left = len(sheet.rows) - len(rows)
        small = type(sheet)(title=f"{sheet.title} ({each.scale})", columns=sheet.columns, rows=rows,
                            note=sheet.note)  # fmt: skip
        parts.append(small.to_markdown() + (f"\n\n{left} rows more in its files." if left else ""))
    parts += [shown(note) for note in each.drawn.notes]
    parts += [f"![{each.item.what}, {each.scale}]({stem}/{name})" for name in figures]
    return parts
