from __future__ import annotations

import numpy as np
import pytest

from headcount.papers.panels import Lines, lines_figure, squares_figure, table_figure


def test_a_line_goes_through_the_means_with_its_ends_shaded():
    panel = Lines("T", {"a": {0.5: [0.2, 0.4], 0.0: [1.0], 1.0: [0.1]}}, "x", "y", level=1.0)
    axes = lines_figure([panel]).axes[0]
    level, line = axes.get_lines()
    assert line.get_xydata().tolist() == [[0.0, 1.0], [0.5, np.mean([0.2, 0.4])], [1.0, 0.1]]
    assert set(level.get_ydata()) == {1.0}
    band = axes.collections[0].get_paths()[0].vertices
    assert {0.2, 0.4} <= set(np.round(band[:, 1], 6))


def test_points_are_not_joined_where_nothing_was_measured_between():
    """Cut at 75 and 85 % alone: no line from all heads over three quarters of the axis."""
    cluster = {0.0: [0.8, 0.9], 0.75: [0.4], 0.85: [0.3]}
    random = {0.0: [0.8], 0.3: [0.7], 0.6: [0.5], 0.9: [0.2]}
    panel = Lines("T", {"cluster": cluster, "random": random}, "x", "y")
    (axes,) = lines_figure([panel]).axes
    drawn = [line.get_xdata().tolist() for line in axes.get_lines()]
    assert drawn == [[0.0], [0.75, 0.85], [0.0, 0.3, 0.6, 0.9]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["cluster", "random"]
    (alone,) = axes.collections[0].get_segments()
    assert alone.tolist() == [[0.0, 0.8], [0.0, 0.9]]  # its ends are still there


def test_what_was_run_at_one_ratio_is_a_point_beside_the_others():
    """A line from all heads to a single ratio would claim what lies between."""
    curve = {0.0: [0.9], 0.25: [0.8], 0.5: [0.7]}
    lines = {"a": {0.0: [0.9], 0.5: [0.6, 0.4]}, "curve": curve, "b": {0.0: [0.9], 0.5: [0.5]}}
    (axes,) = lines_figure([Lines("T", lines, "x", "y", level=0.9)]).axes
    _, first, curve_line, second = axes.get_lines()
    assert curve_line.get_xdata().tolist() == [0.0, 0.25, 0.5]
    (a,), (b,) = first.get_xdata(), second.get_xdata()
    assert (a, b) == (pytest.approx(0.495), pytest.approx(0.505))
    assert (first.get_ydata()[0], second.get_ydata()[0]) == (0.5, 0.5)
    (stroke,) = axes.collections[0].get_segments()
    assert stroke[:, 1].tolist() == [0.4, 0.6]


def test_a_wide_gap_is_one_of_the_axis_as_it_is_drawn():
    line = {0.001: [1.0], 0.01: [1.0], 1.0: [1.0], 10.0: [1.0]}
    for logarithmic, drawn in ((True, 1), (False, 2)):
        panel = Lines("T", {"a": line}, "x", "y", logarithmic=logarithmic)
        assert len(lines_figure([panel]).axes[0].get_lines()) == drawn


def test_colours_have_a_middle_where_there_are_values_on_both_sides():
    plain, mixed = np.array([[1.0, 0.2], [0.2, 1.0]]), np.array([[1.0, -0.6], [-0.6, 1.0]])
    names = ["a", "b"]
    both = squares_figure({"T": (names, plain), "U": (names, mixed)})
    images = [axes.images[0] for axes in both.axes if axes.images]
    assert [(i.cmap.name, *i.get_clim()) for i in images] == [("RdBu_r", -1, 1)] * 2
    for figure in (
        squares_figure({"T": (names, plain)}),
        table_figure("T", names, names, plain, label="r"),
    ):
        assert (figure.axes[0].images[0].cmap.name, *figure.axes[0].images[0].get_clim()) == (
            "viridis", 0, 1,
        )  # fmt: skip
    inks = [text.get_color() for text in both.axes[1].texts]
    assert inks == ["white", "black", "black", "white"]


def test_numbers_are_written_into_squares_and_tables():
    values = np.array([[1.0, 0.25], [0.25, 1.0]])
    square = squares_figure({"T": (["a", "b"], values)}).axes[0]
    table = table_figure("T", ["a", "b"], ["c", "d"], values, label="r").axes[0]
    for axes in (square, table):
        assert [text.get_text() for text in axes.texts] == ["1.00", "0.25", "0.25", "1.00"]


def test_lines_of_another_name_have_a_legend_of_their_own():
    names = ("a", "a", "b")
    panels = [Lines("T", {name: {0.0: [1.0]}}, "x", "y") for name in names]
    legends = [axes.get_legend() for axes in lines_figure(panels).axes]
    assert [legend is not None for legend in legends] == [True, False, True]


def test_a_logarithmic_axis_names_the_places_that_were_measured():
    line = {0.0001: [1.0], 0.003: [2.0]}
    panel = Lines("T", {"a": line}, "x", "y", logarithmic=True)
    (axes,) = lines_figure([panel]).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.0001", "0.003"]
    assert not axes.get_xticks(minor=True).size
