"""The first page of `docs/reproduction.md`: each paper in three sentences and a small picture.

    parts = opening(verdicts, Path("docs/reproduction"))      # Markdown, and its pictures saved

A claim counts by the last scale at which it was run: real weights where there are any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.papers.claims import Verdict, Word
from headcount.papers.numbers import PAPERS, read_paper
from headcount.views.figures import new_figure, save_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TILES: dict[Word, tuple[str, str, str]] = {
    "holds": ("✓", "#1f7a55", "white"),
    "does not hold": ("✗", "#b23a2e", "white"),
    "undecided": ("?", "#e3b04b", "black"),
    "not run": ("–", "#e4e4e4", "black"),
}
"""Verdict -> its sign, the colour of its tile and of what is written on it."""


def opening(verdicts: Sequence[Verdict], folder: Path) -> list[str]:
    """Every paper in brief, with its picture saved in a folder beside the page."""
    signs = ", ".join(f"{sign} {word}" for word, (sign, _, _) in TILES.items())
    scales = ", then ".join(dict.fromkeys(f"`{verdict.scale}`" for verdict in verdicts))
    parts = [
        "## In brief",
        f"Tiles are claims, a row for each scale ({scales}): {signs}. In the sentences a claim "
        "counts by its last row that was run. Its numbers are in the [table](#claims).",
    ]
    for name in PAPERS:
        of_paper = [verdict for verdict in verdicts if verdict.claim.paper == name]
        paper = read_paper(name)
        picture = save_figure(tiles(of_paper), folder / f"overview-{name}.svg")
        parts += [
            f"**{paper.title}** ({paper.venue} {paper.year})",
            f"![Verdicts on the claims of {name}]({folder.name}/{picture.name})",
            _in_words(paper.claims, of_paper),
        ]
    return parts


def tiles(verdicts: Sequence[Verdict]) -> Figure:
    """A tile for every claim, a row for every scale."""
    scales = list(dict.fromkeys(verdict.scale for verdict in verdicts))
    codes = list(dict.fromkeys(verdict.claim.code for verdict in verdicts))
    with styled():
        figure = new_figure(0.5 * len(codes) + 0.8, 0.36 * len(scales) + 0.3)
        axes = figure.add_subplot()
        axes.set(xlim=(-1.5, len(codes)), ylim=(len(scales) - 0.4, -1.05))
        axes.axis("off")
        for row, scale in enumerate(scales):
            axes.text(-0.6, row, scale, ha="right", va="center", fontsize=8)
        for column, code in enumerate(codes):
            axes.text(column, -0.75, code, ha="center", va="center", fontsize=8)
        for verdict in verdicts:
            sign, colour, ink = TILES[verdict.word]
            at = codes.index(verdict.claim.code), scales.index(verdict.scale)
            box = {"boxstyle": "square,pad=0.35", "facecolor": colour, "edgecolor": "white"}
            written = {"ha": "center", "va": "center", "fontsize": 9, "color": ink}
            axes.text(*at, f" {sign} ", bbox=box, **written)
    return figure


def _in_words(claims: str, verdicts: Iterable[Verdict]) -> str:
    """What a paper claims, what of it holds, and what does not and why."""
    counted: dict[str, Verdict] = {}
    for verdict in verdicts:
        if verdict.word != "not run" or verdict.claim.code not in counted:
            counted[verdict.claim.code] = verdict
    by_word: dict[Word, list[Verdict]] = {word: [] for word in TILES}
    for verdict in counted.values():
        by_word[verdict.word].append(verdict)
    holds = [_phrase(verdict) for verdict in by_word["holds"]]
    fails = [_phrase(verdict, _why(verdict)) for verdict in by_word["does not hold"]]
    rest = [
        f"{word.capitalize()}: {', '.join(map(_code, by_word[word]))}."
        for word in ("undecided", "not run")
        if by_word[word]
    ]
    return " ".join(
        [
            f"*Claims.* {claims}",
            f"*Holds here.* {_list(holds)}",
            f"*Does not, and why.* {_list(fails)}",
            *rest,
        ]
    )


def _list(phrases: Sequence[str]) -> str:
    text = "; ".join(phrases) or "nothing"
    return f"{text[0].upper()}{text[1:]}."


def _phrase(verdict: Verdict, more: str = "") -> str:
    return f"{verdict.claim.short} ({_code(verdict)}{more})"


def _why(verdict: Verdict) -> str:
    """The cause, where it was looked for: on real weights."""
    why = verdict.claim.why if verdict.scale == "small" else ""
    return f": {why or 'cause not tested'}"


def _code(verdict: Verdict) -> str:
    """The claim's code, with a word where no real weights were run."""
    return verdict.claim.code + (" on pocket models" if verdict.scale == "pocket" else "")
