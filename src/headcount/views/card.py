"""`headcount report DIR --card answer.png`: the answer of a search as a picture for a slide.

1,200 × 630 dots, the size that pull requests and chats show whole. No browser is needed.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.base.text import printable
from headcount.studies.search.answer_card import AnswerCard
from headcount.views.figures import save_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

DOTS = 150
WIDTH, HEIGHT = 8.0, 4.2
"""Inches, of 150 dots."""
WIDEST = 94
"""Letters of a line of the command; more than two lines are cut off."""
LEFT, RIGHT = 0.055, 0.945
PAPER, INK, SOFT, ACCENT = "#fbfaf7", "#1d1d1b", "#66635c", "#3b6fb6"


def draw_card(card: AnswerCard) -> Figure:
    """The card: what it is about, the line, three figures, the small print."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    with styled():
        figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DOTS, facecolor=PAPER)
        _write(figure, card.subject, LEFT, 0.87, 13, SOFT)
        _write(figure, card.title, LEFT, 0.70, 34, INK, weight="bold")
        figure.add_artist(Line2D([LEFT, RIGHT], [0.60, 0.60], color=ACCENT, lw=2))
        width, values = (RIGHT - LEFT) / 3, []
        for number, tile in enumerate(card.tiles):
            left, room = LEFT + number * width, width - 0.035
            _write(figure, tile.label, left, 0.50, 11, SOFT, room=room)
            values += [_write(figure, tile.value, left, 0.39, 20, ACCENT, room=room, weight="bold")]
            for row, detail in enumerate(tile.detail.split("; ")):
                _write(figure, detail, left, 0.31 - 0.055 * row, 10.5, INK, room=room)
        size = min((value.get_fontsize() for value in values), default=0)
        for value in values:  # all as large as the longest may be
            value.set_fontsize(size)
        _write(figure, card.small_print, LEFT, 0.135, 10, SOFT)
        if card.command:
            lines = textwrap.wrap(
                f"$ {printable(card.command)}",
                WIDEST,
                max_lines=2,
                placeholder=" …",
                break_on_hyphens=False,
            )
            for row, words in enumerate(lines):
                _write(figure, words, LEFT, 0.075 - 0.04 * row, 9, SOFT, family="monospace")
    return figure


def save_card(card: AnswerCard, path: Path) -> None:
    """Write the card as PNG or SVG, by the ending of `path`."""
    save_figure(draw_card(card), path)


def _write(
    figure: Figure,
    text: str,
    left: float,
    bottom: float,
    size: float,
    colour: str,
    *,
    room: float = RIGHT - LEFT,
    weight: str = "normal",
    family: str = "sans-serif",
) -> Text:
    """A line of text, smaller where it would not fit the room."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    shown = figure.text(left, bottom, text, size=size, color=colour, weight=weight, family=family)
    canvas = FigureCanvasAgg(figure)
    taken = shown.get_window_extent(canvas.get_renderer()).width / (WIDTH * DOTS)
    if taken > room:
        shown.set_fontsize(0.99 * size * room / taken)
    return shown
