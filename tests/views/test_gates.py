from __future__ import annotations

import numpy as np
import pytest

from headcount.base.errors import UsageError
from headcount.heads import Layout
from headcount.learned.trace import Trace
from headcount.views.figures import save_figure
from headcount.views.gates import maps_figure, path_figure


def trace_of(layout: Layout) -> Trace:
    trace = Trace(layout, about={"method": "subset", "task": "pets", "route": {"fixed_at_step": 4}})
    heads = len(layout)
    before = np.ones(heads, dtype=bool)
    trace.note(0, np.linspace(0.1, 0.9, heads), before)
    for step in range(1, 7):
        after = before.copy()
        after[step % heads] ^= True
        trace.count(before, after)
        trace.note(step, np.linspace(-1, 1, heads), after)
        before = after
    trace.scores = [{"step": 2, "loss": 0.7}, {"step": 6, "loss": 0.4}]
    return trace


@pytest.mark.parametrize(
    ("layout", "panels"),
    [(Layout.of(encoder=[3, 2]), 6), (Layout.of(encoder=[2], cross=[2], decoder=[2]), 18)],
    ids=["encoder", "three stacks"],
)
def test_maps_at_start_middle_and_end(layout: Layout, panels: int, tmp_path) -> None:
    figure = maps_figure(trace_of(layout))
    axes = [each for each in figure.axes if each.images]
    assert len(axes) == panels
    titles = [each.get_title(loc="left") for each in axes]
    assert sum("step 0" in title for title in titles) == len(layout.stacks)
    assert sum("step 2" in title for title in titles) == len(layout.stacks)
    assert sum("step 6" in title for title in titles) == len(layout.stacks)
    for ending in ("png", "svg"):
        assert save_figure(figure, tmp_path / f"maps.{ending}").stat().st_size > 1000


def test_the_way_there(tmp_path) -> None:
    trace = trace_of(Layout.of(encoder=[3, 2]))
    figure = path_figure(trace)
    closed, reopened = figure.axes[1].lines[:2]
    assert closed.get_ydata()[-1] == sum(trace.closings)
    assert reopened.get_ydata()[-1] == sum(trace.reopenings) > 0
    assert figure.axes[0].lines[0].get_ydata()[-1] == 1 - trace.opened[-1] / 5
    save_figure(figure, tmp_path / "path.png")


def test_the_score_stands_beside_the_closed_gates(tmp_path) -> None:
    trace = trace_of(Layout.of(encoder=[3, 2]))
    alone = path_figure(trace)
    assert [axes.get_ylabel() for axes in alone.axes][-1] == "training loss"  # on the right
    trace.about["metric"] = "accuracy"
    trace.scores += [
        {"step": 0, "open": 5, "score": 0.9, "n": 40},
        {"step": 6, "open": 3, "score": 0.7, "n": 40},
    ]
    figure = path_figure(trace)
    by_label = {axes.get_ylabel(): axes for axes in figure.axes}
    assert by_label["accuracy, n = 40"].lines[0].get_xydata().tolist() == [[0, 0.9], [6, 0.7]]
    assert by_label["training loss"].lines[0].get_xydata().tolist() == [[2, 0.7], [6, 0.4]]
    shared = by_label["accuracy, n = 40"].get_position().bounds
    assert shared == by_label["share of gates closed"].get_position().bounds
    assert shared != by_label["training loss"].get_position().bounds
    low, high = by_label["accuracy, n = 40"].get_ylim()
    assert low < 0.7 < 0.9 < high < 1
    trace.scores = trace.scores[2:]
    trace.scores[1]["score"] = 0.898
    axes = path_figure(trace).axes[-1]
    assert axes.get_ylim() == pytest.approx((0.854, 0.944))  # not the two thousandths alone
    assert "training loss" not in [axes.get_ylabel() for axes in path_figure(trace).axes]
    save_figure(figure, tmp_path / "path.svg")


def test_nothing_to_draw() -> None:
    with pytest.raises(UsageError, match="no step"):
        maps_figure(Trace(Layout.of(encoder=[2])))
