from __future__ import annotations

import sys

import numpy as np
import pytest

from headcount.base.errors import MissingExtraError, UsageError
from headcount.changes.maps import AttentionMaps, HeadUse, Tokens
from headcount.heads import Layout, Scores, Stack
from headcount.learned.trace import Trace
from headcount.likeness.compare import compare
from headcount.views.attention import closeup, overview
from headcount.views.figures import (
    STYLE,
    check_figures,
    draw_band,
    head_grid,
    need_matplotlib,
    new_figure,
    save_both,
    save_figure,
)
from headcount.views.gates import maps_figure, path_figure
from headcount.views.redundancy import comparison_figure, heat_maps
from headcount.views.studies import curve_figure, frequency_figure
from headcount.views.transfer import head_map
from views.test_gates import trace_of
from views.test_redundancy import value

LAYOUTS = {
    "12 x 12": Layout.of(encoder=[12] * 12),
    "2 x 12": Layout.of(encoder=[12] * 2),
    "three stacks": Layout.of(encoder=[8] * 3, cross=[8] * 3, decoder=[8] * 3),
}


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


def test_both_endings_at_once(tmp_path):
    save_both(new_figure(2, 1), tmp_path / "v1.5")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v1.5.png", "v1.5.svg"]


def test_the_second_file_is_laid_out_as_the_first(tmp_path, monkeypatch):
    def titled():
        figure = new_figure(3, 2)
        for axes in figure.subplots(1, 2):
            axes.set_ylabel("a label\nof two lines")
        return figure

    alone, both, reckoned = titled(), titled(), []
    save_figure(alone, tmp_path / "alone.svg")
    engine = both.get_layout_engine()
    execute = type(engine).execute
    monkeypatch.setattr(
        type(engine), "execute", lambda self, figure: reckoned.append(execute(self, figure))
    )
    save_figure(both, tmp_path / "once.png")
    once = len(reckoned)
    save_both(both, tmp_path / "both")
    assert len(reckoned) == 2 * once > 0
    assert both.get_layout_engine() is engine
    for one, other in zip(alone.axes, both.axes, strict=True):
        assert one.get_position().bounds == pytest.approx(other.get_position().bounds, abs=0.01)


def maps_of(layout, two):
    """Attention of one text by every head; with two models, some heads are gone."""
    words = ("[CLS]", "the", "lawyer", "sees", "the", "judge", "of", "the", "town", "[SEP]")
    rng = np.random.default_rng(0)
    before = {HeadUse(head): rng.random((len(words),) * 2).astype(np.float32) for head in layout}
    after = {run: values for run, values in before.items() if run.head.index % 2} if two else None
    tokens = {stack.name: Tokens(words, words) for stack in layout.stacks}
    return AttentionMaps(layout=layout, tokens=tokens, before=before, after=after)


def drawn(name, layout):
    """Every figure with maps, of a model with this layout."""
    scores = Scores(layout, tuple(np.linspace(0, 1, len(layout))))
    stack = layout.stacks[0].name
    match name:
        case "overview":
            return overview(maps_of(layout, False), stack, ["a model with a long name"])
        case "overview of two":
            return overview(maps_of(layout, True), stack, ["bert-base-uncased", "small"])
        case "closeup":
            few = maps_of(layout, False).only(stack=stack, layers=[0], heads=[0, 1, 2])
            return closeup(few, stack, ["bert-base-uncased"])
        case "gates":
            return maps_figure(trace_of(layout))
        case "frequency":
            return frequency_figure({0.1: scores, 0.5: scores, 0.9: scores}, title="How often")
        case "head map":
            label = "Jensen–Shannon divergence, bits"
            return head_map(scores, title="pocket → run\n100 inputs (cola)", label=label)
        case _:
            return heat_maps(value(layout=layout))


NAMES = ("overview", "overview of two", "closeup", "gates", "frequency", "head map", "heat maps")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_scales_are_as_high_as_their_maps_and_nothing_is_cut_off(name, layout):
    figure = drawn(name, layout)
    figure.draw_without_rendering()
    bars = [child for axes in figure.axes for child in axes.child_axes]
    assert bars
    for axes in figure.axes:
        for bar in axes.child_axes:
            own, beside = bar.get_window_extent(), axes.get_window_extent()
            assert (own.y0, own.y1) == pytest.approx((beside.y0, beside.y1), abs=1)
    inside(figure)


def inside(figure):
    """Whatever is drawn is inside the figure, in inches."""
    box = figure.get_tightbbox()
    wide, high = figure.get_size_inches()
    assert min(box.x0, box.y0) >= -0.01, box
    assert (box.x1 <= wide + 0.01, box.y1 <= high + 0.01) == (True, True), (box, wide, high)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_values_stand_above_their_gates(layout):
    figure = maps_figure(trace_of(layout))
    figure.draw_without_rendering()
    for row in range(0, 2 * len(layout.stacks), 2):
        above, below = figure.axes[3 * row : 3 * row + 3], figure.axes[3 * row + 3 : 3 * row + 6]
        for one, other in zip(above, below, strict=True):
            high, low = one.get_window_extent(), other.get_window_extent()
            assert (high.x0, high.x1) == pytest.approx((low.x0, low.x1), abs=1)
            assert high.y0 > low.y1
    legend = figure.axes[5].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["open", "closed"]


def test_lines_are_not_cut_off_either():
    band = {"mean": 0.7, "worst": 0.6, "best": 0.8, "seeds": 3}
    full = {"score": 0.9, "low": 0.8, "high": 1.0}
    rows = [{"method": method, "ratio": 0.5, **band} for method in ("random", "hard-concrete")]
    found = compare({"a": value(), "b": value(1)}, permutations=9)
    traced: Trace = trace_of(LAYOUTS["12 x 12"])
    for figure in (
        curve_figure(rows, full, title="bert on sst2", metric="accuracy"),
        comparison_figure(found),
        path_figure(traced),
    ):
        figure.draw_without_rendering()
        inside(figure)


def test_a_band_around_its_line_and_a_stroke_for_a_single_point():
    axes = new_figure(2, 2).add_subplot()
    draw_band(axes, [0, 1], [0.5, 0.6], [0.4, 0.5], [0.7, 0.8], colour="red", label="mean")
    draw_band(axes, [2], [0.5], [0.4], [0.7], colour="blue")
    band, stroke = axes.collections
    assert band.get_paths()[0].vertices[:, 1].max() == 0.8
    assert [segment.tolist() for segment in stroke.get_segments()] == [[[2, 0.4], [2, 0.7]]]
    assert [line.get_ydata().tolist() for line in axes.lines] == [[0.5, 0.6], [0.5]]


def test_heads_of_a_pruned_model_are_drawn_where_they_were():
    layout = Layout((Stack("encoder", (2, 1), (2, 1), (1, 1), ((1, 3), (0,))),))
    grid = head_grid(layout, [0.1, 0.2, 0.3], "encoder")
    np.testing.assert_array_equal(grid, [[np.nan, 0.1, np.nan, 0.2], [0.3, *[np.nan] * 3]])
