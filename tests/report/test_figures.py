from __future__ import annotations

import sys

import pytest

from headcount.errors import MissingExtraError, UsageError
from headcount.report.figures import check_figures, new_figure, save_figure


def test_both_formats_and_nothing_else(tmp_path):
    figure = new_figure(2, 1)
    figure.add_subplot().set_title("a title")
    png, svg = save_figure(figure, tmp_path / "a.png"), save_figure(figure, tmp_path / "a.SVG")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "a title" in svg.read_text()
    first = svg.read_bytes()
    assert save_figure(figure, svg).read_bytes() == first, "the same figure is the same file"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.SVG", "a.png"]
    with pytest.raises(UsageError, match=r"ends in \.png or \.svg, not 'a\.pdf'"):
        check_figures(["a.png", "a.pdf"])


def test_without_matplotlib_the_message_is_the_pip_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'headcount\[report\]'"):
        check_figures(["a.png"])
    check_figures([])


def test_text_from_elsewhere_is_shown_as_it_is(tmp_path):
    from xml.etree import ElementTree

    from headcount.report.figures import STYLE, need_matplotlib, new_figure, save_figure

    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(3, 3)
        axes = figure.add_subplot()
        axes.plot([0, 1], [0, 1], label="<b>&$a_b$")
        axes.set_title("$x^2$ costs $\x1b[31m")
        axes.set_xticks([0, 1], ["\x00", "tok$en\ufffe"])
        axes.legend()
    for ending in (".svg", ".png"):
        save_figure(figure, tmp_path / f"a{ending}")
    text = "".join(ElementTree.parse(tmp_path / "a.svg").getroot().itertext())
    for shown in ("$x^2$ costs $\\x1b[31m", "<b>&$a_b$", "\\x00", "tok$en\\ufffe"):
        assert shown in text
