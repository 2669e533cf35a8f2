from __future__ import annotations

import numpy as np
import pytest

from headcount.views.figures import save_figure
from headcount.views.sweep import logarithmic, sweep_figure

FULL = {"score": 0.8, "low": 0.75, "high": 0.85}


def row(value, sparsity, score, closed=0):
    def spread(mean):
        return {"mean": mean, "worst": mean - 0.05, "best": mean + 0.05}

    return {
        "value": value, "seeds": 3, "sparsity": spread(sparsity), "score": spread(score),
        "all_closed": closed,
    }  # fmt: skip


ROWS = [row(1e-2, 0.95, 0.5, closed=2), row(1e-4, 0.1, 0.8), row(1e-3, 0.5, 0.75)]


def drawn(rows=ROWS, full=FULL):
    return sweep_figure(rows, full, over="mu", title="gates on cola", metric="matthews")


def test_sparsity_above_and_score_below_in_the_order_of_the_values(tmp_path):
    figure = drawn()
    top, low = figure.axes
    assert np.allclose(top.lines[0].get_xydata(), [[1e-4, 10], [1e-3, 50], [1e-2, 95]])
    lines = {line.get_label(): line for line in low.lines}
    assert np.allclose(lines["mean of 3"].get_xydata(), [[1e-4, 0.8], [1e-3, 0.75], [1e-2, 0.5]])
    assert np.allclose(lines["all heads"].get_ydata(), 0.8)
    assert (len(top.collections), len(low.collections)) == (1, 2)  # bands; one explains them
    told = [text.get_text() for text in low.get_legend().get_texts()]
    assert {"its 95 % interval", "band: worst to best"} <= set(told)
    band = top.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (pytest.approx(5), pytest.approx(100))
    assert [tick.get_text() for tick in low.get_xticklabels()] == ["0.0001", "0.001", "0.01"]
    assert (low.get_xlabel(), low.get_ylabel()) == ("mu", "matthews")
    for ending in ("png", "svg"):
        assert save_figure(figure, tmp_path / f"s.{ending}").stat().st_size > 1000
    assert "gates on cola" in (tmp_path / "s.svg").read_text()


def test_runs_in_which_all_gates_closed_are_marked():
    top, low = drawn().axes
    marks = [line for line in low.lines if line.get_marker() == "x"]
    assert [mark.get_xydata().tolist() for mark in marks] == [[[1e-2, 0.5]]]
    assert [text.get_text() for text in top.texts] == ["2 of 3 closed"]
    top, low = drawn(ROWS[1:]).axes
    assert not [line for line in (*top.lines, *low.lines) if line.get_marker() == "x"]


def test_a_logarithmic_axis_past_a_decade():
    assert drawn().axes[1].get_xscale() == "log"
    near = [row(0.1, 0.1, 0.8), row(1.0, 0.2, 0.8)]
    assert drawn(near).axes[1].get_xscale() == "linear"
    assert logarithmic([0.02, 0.21])
    assert not logarithmic([0.0, 1.0])
    assert not logarithmic([-0.1, -0.001])


def test_a_score_of_zero_has_no_relative_axis():
    assert drawn().axes[1].child_axes
    assert not drawn(full=FULL | {"score": 0.0}).axes[1].child_axes
