from __future__ import annotations

import numpy as np
import pytest

from headcount.changes.correlation import correlate
from headcount.changes.recall import Recall
from headcount.heads import Layout, Scores
from headcount.runs.kinds.transfer import LayerDriftValues
from headcount.views.figures import save_figure
from headcount.views.transfer import head_map, layer_lines, recall_lines, scatter
from runs.whole import result

LAYOUT = Layout.of(encoder=[2, 3], decoder=[1, 1])
SCORES = Scores(LAYOUT, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7))


def test_a_panel_for_each_stack_on_one_scale(tmp_path):
    figure = head_map(SCORES, title="drift of bert", label="bits")
    maps = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title(loc="left") for axes in maps] == ["encoder", "decoder"]
    shown = maps[0].images[0].get_array()
    assert shown[1].tolist() == [0.3, 0.4, 0.5]
    assert np.ma.is_masked(shown[0, 2])  # the first layer has one head fewer
    assert {axes.images[0].get_clim() for axes in maps} == {(0, 0.7)}
    for ending in ("png", "svg"):
        assert save_figure(figure, tmp_path / f"m.{ending}").stat().st_size > 1000
    assert "drift of bert" in (tmp_path / "m.svg").read_text()


def test_nothing_moved():
    figure = head_map(Scores(Layout.of(encoder=[2]), (0.0, 0.0)), title="", label="")
    assert figure.axes[0].images[0].get_clim() == (0, 1)


def row(stack, layer, mean, hidden):
    values = {"mean": mean, "max": 2 * mean, "hidden": hidden}
    errors = {f"{name}_stderr": 0.01 for name in values}
    return result(LayerDriftValues, {"stack": stack, "layer": layer, **values, **errors})


def test_mean_and_max_of_layers_above_hidden_states():
    nothing = None
    rows = [row("encoder", 0, 0.1, 3.0), row("encoder", 1, 0.2, 4.0), row("cross", 0, 0.3, nothing)]
    above, below = layer_lines(rows, title="two").axes
    names = [text.get_text() for text in above.get_legend().get_texts()]
    assert names == [
        "encoder, mean of heads", "encoder, max of heads",
        "cross, mean of heads", "cross, max of heads",
    ]  # fmt: skip
    assert above.containers[1].lines[0].get_ydata().tolist() == [0.2, 0.4]
    assert [text.get_text() for text in below.get_legend().get_texts()] == ["encoder"]
    assert below.containers[0].lines[0].get_ydata().tolist() == [3.0, 4.0]


def test_a_point_for_each_head_and_the_line():
    other = Scores(LAYOUT, (1.0, 3.0, 2.0, 5.0, 4.0, 7.0, 6.0))
    line = correlate(SCORES.values, other.values)
    figure = scatter(SCORES, {"sst2": other}, {"sst2": line}, title="")
    (axes,) = figure.axes
    points, more, drawn = axes.get_lines()
    assert points.get_xdata().tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert more.get_ydata().tolist() == [7.0, 6.0]
    assert drawn.get_ydata() == pytest.approx(line.slope * np.array([0.1, 0.7]) + line.intercept)
    assert axes.get_title(loc="left").startswith(f"sst2: r = {line.pearson:.2f} [")


def test_no_line_where_nothing_drifts():
    flat = Scores(LAYOUT, (0.0,) * 7)
    figure = scatter(flat, {"a": SCORES}, {"a": correlate(flat.values, SCORES.values)}, title="")
    assert len(figure.axes[0].get_lines()) == 2  # the points of two stacks


def test_recall_and_chance():
    counts = {"p": 0.1, "needed": 5, "kept": 5, "both": 3, "heads": 9}
    recall = {0.5: Recall(value=0.6, chance=0.2, **counts),
              0.9: Recall(value=1.0, chance=0.7, **counts)}  # fmt: skip
    (axes,) = recall_lines(recall, title="cola").axes
    found, chance = axes.get_lines()
    assert found.get_xdata() == pytest.approx([50, 90])
    assert found.get_ydata().tolist() == [0.6, 1.0]
    assert chance.get_ydata().tolist() == [0.2, 0.7]
