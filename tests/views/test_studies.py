"""Figures of studies: the curve, which heads go, the sweep, and the search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headcount.heads import Layout, Scores
from headcount.views.figures import save_figure
from headcount.views.studies import (
    curve_figure,
    frequency_figure,
    logarithmic,
    save_search,
    search_figure,
    sweep_figure,
)

FULL = {"score": 0.8, "low": 0.75, "high": 0.85}


def row(method, ratio, mean):
    band = {"worst": mean - 0.1, "best": mean + 0.1, "seeds": 3}
    return {"method": method, "ratio": ratio, "mean": mean, **band}


def test_a_line_and_a_band_for_each_method(tmp_path):
    rows = [row("random", 0.5, 0.6), row("random", 0.25, 0.7), row("cluster", 0.5, 0.65)]
    figure = curve_figure(rows, FULL, title="bert on sst2", metric="accuracy")
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert set(lines) == {"all heads", "random, mean of 3", "cluster, mean of 3"}
    assert np.allclose(lines["random, mean of 3"].get_xdata(), [0, 25, 50])  # from all heads on
    assert np.allclose(lines["random, mean of 3"].get_ydata(), [0.8, 0.7, 0.6])
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert {"its 95 % interval", "band: worst to best"} <= set(legend)
    assert np.allclose(lines["all heads"].get_ydata(), 0.8)
    assert len(axes.collections) == 3  # two bands, and the one that explains them
    for ending in ("png", "svg"):
        assert save_figure(figure, tmp_path / f"c.{ending}").stat().st_size > 1000
    assert "bert on sst2" in (tmp_path / "c.svg").read_text()


def test_a_score_without_an_interval_has_no_band():
    full = FULL | {"low": None, "high": None}
    figure = curve_figure([row("random", 0.5, 0.6)], full, title="", metric="spearman")
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "all heads" in legend
    assert "its 95 % interval" not in legend


def test_a_score_of_zero_has_no_relative_axis():
    figure = curve_figure([row("random", 0.5, 0.1)], FULL | {"score": 0.0}, title="", metric="m")
    assert not figure.axes[0].child_axes


def test_layers_and_heads_for_each_ratio():
    layout = Layout.of(encoder=[2, 3], decoder=[1])
    scores = Scores(layout, (0, 0.5, 1, 0, 0.25, 1))
    figure = frequency_figure({0.5: scores, 0.75: scores}, title="which")
    maps = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title(loc="left") for axes in maps] == [
        "encoder, 50 %",
        "encoder, 75 %",
        "decoder, 50 %",
        "decoder, 75 %",
    ]
    shown = np.ma.filled(maps[0].images[0].get_array(), np.nan)
    assert shown[1].tolist() == [1, 0, 0.25]
    assert np.isnan(shown[0, 2])


def swept(value, sparsity, score, closed=0):
    def spread(mean):
        return {"mean": mean, "worst": mean - 0.05, "best": mean + 0.05}

    return {
        "value": value, "seeds": 3, "sparsity": spread(sparsity), "score": spread(score),
        "all_closed": closed,
    }  # fmt: skip


ROWS = [swept(1e-2, 0.95, 0.5, closed=2), swept(1e-4, 0.1, 0.8), swept(1e-3, 0.5, 0.75)]


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
    legend = [text.get_text() for text in low.get_legend().get_texts()]
    assert {"its 95 % interval", "band: worst to best"} <= set(legend)
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
    near = [swept(0.1, 0.1, 0.8), swept(1.0, 0.2, 0.8)]
    assert drawn(near).axes[1].get_xscale() == "linear"
    assert logarithmic([0.02, 0.21])
    assert not logarithmic([0.0, 1.0])
    assert not logarithmic([-0.1, -0.001])


def test_a_sweep_of_a_score_of_zero_has_no_relative_axis():
    assert drawn().axes[1].child_axes
    assert not drawn(full=FULL | {"score": 0.0}).axes[1].child_axes


TRIED = [
    {"method": method, "kept": kept, "seed": 0, "rows": 99, "score": 0.8 - 0.002 * (48 - kept),
     "difference": {"value": -0.01, "low": -0.03, "high": 0.02}, "probability": 0.6,
     "accepted": True}
    for method in ("surgeon", "random") for kept in (12, 24, 36)
]  # fmt: skip
DATA: dict[str, Any] = {
    "model": "runs/tiny", "task": "pets", "metric": "f1", "heads": 48, "kept": 24,
    "method": "surgeon", "selection": {"score": 0.8, "low": 0.75, "high": 0.85}, "least": 0.792,
    "bound": "1 %", "full": 0.7, "score": 0.69, "higher_is_better": True,
    "difference": {"value": -0.01, "low": -0.04, "high": 0.01},
    "random": {"scores": [0.6, 0.7]}, "tried": TRIED,
}  # fmt: skip


def labels(data: Any) -> list[str]:
    (axes,) = search_figure(data).axes
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_tried_models_bound_selected_model_and_random_heads_are_drawn() -> None:
    (axes,) = search_figure(DATA).axes
    assert axes.get_xlabel() == "heads kept, of 48"
    assert axes.get_title(loc="left") == "tiny on pets"
    assert set(labels(DATA)) == {
        "all heads", "its 95 % interval", "1 % less", "surgeon, selection set",
        "random, selection set", "selected model, held-out set", "random heads, held-out set",
    }  # fmt: skip
    dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert [line.get_ydata()[0] for line in dotted] == [0.792]


def test_what_was_scored_on_other_rows_stands_by_its_difference() -> None:
    few = {**TRIED[0], "score": 0.95, "difference": {"value": 0.01, "low": 0.0, "high": 0.02}}
    (axes,) = search_figure(DATA | {"tried": [few]}).axes
    heights = {line.get_marker(): line.get_ydata() for line in axes.lines}
    assert heights["o"] == pytest.approx([0.81])  # 0.95 of easier rows, where all heads have 0.94
    assert heights["*"] == pytest.approx([0.79])  # 0.69 where all heads have 0.7
    assert heights["x"] == pytest.approx([0.7, 0.8])
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


@pytest.mark.parametrize(
    ("change", "missing"),
    [({"least": None}, "1 % less"), ({"score": None}, "selected model, held-out set"),
     ({"random": None}, "random heads, held-out set")],
)  # fmt: skip
def test_what_is_not_there_is_not_drawn(change: dict[str, Any], missing: str) -> None:
    assert missing not in labels(DATA | change)


def test_a_rise_is_more() -> None:
    assert "1 % more" in labels(DATA | {"higher_is_better": False})


def test_nothing_tried_draws_nothing(tmp_path) -> None:
    save_search(DATA | {"tried": []}, tmp_path)
    assert list(tmp_path.iterdir()) == []
    save_search(DATA, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"search.png", "search.svg"}


def test_a_difference_without_an_interval_is_drawn_without_one() -> None:
    """Rows were too few for one: JSON has null."""
    none = {"value": -0.01, "low": None, "high": None, "no_interval": "it takes 60 rows"}
    tried = [{**one, "difference": none} for one in TRIED]
    selection = {"score": 0.8, "low": None, "high": None}
    data = DATA | {"difference": none, "tried": tried, "selection": selection}
    assert "its 95 % interval" not in labels(data)
    assert "selected model, held-out set" in labels(data)
