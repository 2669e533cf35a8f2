from __future__ import annotations

import math
import re
from html.parser import HTMLParser

import pytest

from headcount.base import html
from headcount.heads import Head, Layout, Mask, Scores, Stack

EVIL = "<script>alert('x')</script>\"&\x1b[2J"


class Reader(HTMLParser):
    """What a browser would see: tags that open and close, tooltips, cells, text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.titles: list[str] = []
        self.colours: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "col":
            self.open.append(tag)
        found = {name: value or "" for name, value in attrs}
        assert set(found) <= {"style", "title", "span"}
        if "title" in found:
            self.titles.append(found["title"])
            self.colours.append(found["style"].rpartition("background:")[2])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_table_is_escaped() -> None:
    read = Reader(html.table(["a", EVIL], [(EVIL, 1.23456), (2, None)], title=EVIL))
    assert "script" not in read.tags
    assert read.text.count("<script>alert('x')</script>\"&\\x1b[2J") == 3
    assert "1.235" in read.text


def test_a_grid_has_a_cell_for_every_head_of_every_stack() -> None:
    layout = Layout.of(encoder=[2, 0, 3], cross=[1], decoder=[2])
    read = Reader(html.grid(EVIL, layout, lambda head: 0.5, lambda head: EVIL))
    assert read.tags.count("table") == read.tags.count("caption") == 3
    assert read.tags.count("tr") == 5
    assert [title.partition(":")[0] for title in read.titles] == [str(head) for head in layout]
    assert "script" not in read.tags


def test_shades_run_from_light_to_dark_and_holes_are_told_apart() -> None:
    layout = Layout.of(encoder=[5])
    shades = dict(zip(layout, (0.0, 1.0, None, math.nan, 7.0), strict=True))
    text = html.grid("", layout, shades.__getitem__, lambda head: "")
    light, dark, absent, none, over = Reader(text).colours
    assert (light, dark) == ("hsl(205,70%,90%)", "hsl(205,70%,30%)")
    assert over == dark
    assert absent == none == html.ABSENT
    assert Reader(text).text.count("×") == 1


@pytest.mark.parametrize(
    ("values", "shades"),
    [
        ([1.0, 2.0, 3.0], [0.0, 0.5, 1.0]),
        ([2.0, 2.0], [0.5, 0.5]),
        ([], []),
        ([-math.inf, 0.0, 4.0, math.inf], [0.0, 0.0, 1.0, 1.0]),
        ([-1.7e308, 1.7e308], [0.5, 0.5]),
    ],
)
def test_scaled(values: list[float], shades: list[float]) -> None:
    assert html.scaled(values) == shades


def test_what_is_no_number_has_no_shade() -> None:
    first, second = html.scaled([math.nan, 1.0])
    assert math.isnan(first)
    assert second == 0.5


def test_a_mask_shows_what_it_keeps() -> None:
    layout = Layout.of(encoder=[2, 2])
    read = Reader(Mask.full(layout).drop([Head("encoder", 1, 0)])._repr_html_())
    assert read.text.startswith("Mask: keeps 3 of 4 heads")
    assert read.titles[1:3] == ["encoder.0.1: kept", "encoder.1.0: dropped"]
    assert read.colours.count(html.ABSENT) == 1


def test_scores_show_their_order_and_what_is_missing() -> None:
    layout = Layout.of(encoder=[2], decoder=[2])
    read = Reader(Scores(layout, (0.1, math.nan, 0.9, math.inf))._repr_html_())
    assert read.titles == [
        "encoder.0.0: 0.1", "encoder.0.1: nan", "decoder.0.0: 0.9", "decoder.0.1: inf",
    ]  # fmt: skip
    assert read.text.count("×") == 1
    assert "1 NaN" in read.text


def test_a_layout_shows_the_heads_that_share_and_their_old_numbers() -> None:
    layout = Layout((Stack("decoder", (4,), (2,), (1,), ((0, 1, 6, 7),)),), (EVIL,))
    read = Reader(layout._repr_html_())
    assert read.titles[2:] == ["decoder.0.6: key-value head 1", "decoder.0.7: key-value head 1"]
    first, second, third, _ = read.colours
    assert first == second != third
    assert "script" not in read.tags


def test_a_large_model_stays_under_a_megabyte() -> None:
    text = Mask.full(Layout.of(decoder=[64] * 80))._repr_html_()
    assert len(text) < 1_000_000
    assert not re.search("class=|<style|<script", text)
