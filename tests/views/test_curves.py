from __future__ import annotations

import numpy as np

from headcount.heads import Layout, Scores
from headcount.views.curves import chance_figure, curve_figure, grid_of
from headcount.views.figures import save_figure


def row(method, ratio, mean):
    band = {"worst": mean - 0.1, "best": mean + 0.1, "seeds": 3}
    return {"method": method, "ratio": ratio, "mean": mean, **band}


FULL = {"score": 0.8, "low": 0.75, "high": 0.85}


def test_a_line_and_a_band_for_each_method(tmp_path):
    rows = [row("random", 0.5, 0.6), row("random", 0.25, 0.7), row("cluster", 0.5, 0.65)]
    figure = curve_figure(rows, FULL, title="bert on sst2", metric="accuracy")
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert set(lines) == {"all heads", "random, mean of 3", "cluster, mean of 3"}
    assert np.allclose(lines["random, mean of 3"].get_xdata(), [0, 25, 50])  # from all heads on
    assert np.allclose(lines["random, mean of 3"].get_ydata(), [0.8, 0.7, 0.6])
    told = [text.get_text() for text in axes.get_legend().get_texts()]
    assert {"its 95 % interval", "band: worst to best"} <= set(told)
    assert np.allclose(lines["all heads"].get_ydata(), 0.8)
    assert len(axes.collections) == 3  # two bands, and the one that explains them
    for ending in ("png", "svg"):
        assert save_figure(figure, tmp_path / f"c.{ending}").stat().st_size > 1000
    assert "bert on sst2" in (tmp_path / "c.svg").read_text()


def test_a_score_without_an_interval_has_no_band():
    full = FULL | {"low": None, "high": None}
    figure = curve_figure([row("random", 0.5, 0.6)], full, title="", metric="spearman")
    told = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "all heads" in told
    assert "its 95 % interval" not in told


def test_a_score_of_zero_has_no_relative_axis():
    figure = curve_figure([row("random", 0.5, 0.1)], FULL | {"score": 0.0}, title="", metric="m")
    assert not figure.axes[0].child_axes


def test_layers_and_heads_for_each_ratio():
    layout = Layout.of(encoder=[2, 3], decoder=[1])
    scores = Scores(layout, (0, 0.5, 1, 0, 0.25, 1))
    figure = chance_figure({0.5: scores, 0.75: scores}, title="which")
    maps = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title(loc="left") for axes in maps] == [
        "encoder, 50 %",
        "encoder, 75 %",
        "decoder, 50 %",
        "decoder, 75 %",
    ]
    shown = maps[0].images[0].get_array()
    assert shown[1].tolist() == [1, 0, 0.25]
    assert np.isnan(grid_of([[0.0, 0.5], [1.0, 0.0, 0.25]])[0, 2])
