"""The card as a picture: its size, and that no line leaves it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headcount.studies.search.answer_card import AnswerCard, Tile
from headcount.views.card import draw_card, save_card

CARD = AnswerCard(
    title="39 of 72 heads are enough",
    subject="mini on mrpc",
    tiles=tuple(Tile(label=name, value="0.861 → 0.859", detail="[a, b]; c") for name in "xyz"),
    small_print="204 rows of dev",
    command="headcount search mini --task mrpc",
)


def test_it_has_the_size_that_is_shown_whole(tmp_path: Path) -> None:
    from matplotlib.image import imread

    save_card(CARD, tmp_path / "a.png")
    picture = imread(tmp_path / "a.png")
    assert picture.shape[:2] == (630, 1200)
    save_card(CARD, tmp_path / "a.svg")
    assert "39 of 72 heads are enough" in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("long", ["title", "subject", "small_print", "command"])
def test_a_long_line_gets_smaller_instead_of_leaving_the_picture(long: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = draw_card(replace(CARD, **{long: "many words of it " * 8}))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    edges = [text.get_window_extent().x1 for text in figure.texts]
    assert max(edges) <= 1200


def test_values_are_of_one_size_the_longest_decides() -> None:
    def sizes(*tiles: Tile) -> set[float]:
        figure = draw_card(replace(CARD, tiles=tiles))
        values = [tile.value for tile in tiles]
        return {float(text.get_fontsize()) for text in figure.texts if text.get_text() in values}

    short, long = (Tile(label="a", value=value, detail="") for value in ("1 ×", "12345 → 67890 M"))
    assert sizes(short) == {20}
    (size,) = sizes(short, long)
    assert size < 20


def test_a_command_has_two_lines_and_ends_where_it_is_cut() -> None:
    command = "headcount search mini " + "--calibration-samples 256 " * 12
    figure = draw_card(replace(CARD, command=command))
    first, second = (text.get_text() for text in figure.texts[-2:])
    assert first.startswith("$ headcount search mini --calibration-samples")
    assert second.endswith(" …")
    assert command.startswith(f"{first[2:]} {second[:-2]}")
