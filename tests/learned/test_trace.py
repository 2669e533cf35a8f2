from __future__ import annotations

import numpy as np
import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.heads import Layout
from headcount.learned.trace import Trace, load_trace


def made() -> Trace:
    trace = Trace(Layout.of(encoder=[2, 1]), about={"method": "straight-through"})
    states = np.array([[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 1, 1]], dtype=bool)
    trace.note(0, np.array([0.1, 0.2, 0.3]), states[0])
    for step in (1, 2, 3):
        trace.count(states[step - 1], states[step])
        trace.note(step, np.array([0.1, 0.2, 0.3]) - step, states[step])
    trace.scores = [{"step": 3, "loss": 0.5}]
    return trace


def test_closed_and_reopened_are_counted() -> None:
    trace = made()
    assert trace.opened == [2, 1, 2]
    assert trace.closings == [1, 1, 0]
    assert trace.reopenings == [0, 0, 1]
    assert trace.summary() == {
        "closings": 2, "reopenings": 1, "gates_reopened": 1, "gates_reopened_and_kept": 1,
    }  # fmt: skip
    assert trace.left()["encoder"].tolist() == [[2, 1], [1, 1], [0, 1], [1, 1]]


def test_saved_and_loaded(tmp_path) -> None:
    trace = made()
    trace.save(tmp_path / "gates.npz")
    again = load_trace(tmp_path)
    assert (again.layout, again.about, again.scores) == (trace.layout, trace.about, trace.scores)
    for name, array in trace.to_arrays().items():
        assert np.array_equal(array, again.to_arrays()[name]), name


def test_losses_go_between_the_scores() -> None:
    trace = made()
    trace.scores = [{"step": 0, "score": 0.9, "open": 3}, {"step": 3, "score": 0.8, "open": 2}]
    trace.add_losses([{"step": 1, "loss": 0.5}, {"step": 3, "loss": 0.4}])
    assert [(p["step"], *sorted(p)[:1]) for p in trace.scores] == [
        (0, "open"), (1, "loss"), (3, "loss"), (3, "open"),
    ]  # fmt: skip


def test_refusals(tmp_path) -> None:
    with pytest.raises(NotFoundError, match="no trace of gates"):
        load_trace(tmp_path)
    (tmp_path / "gates.npz").write_text("nothing")
    with pytest.raises(UsageError, match="is no trace of gates"):
        load_trace(tmp_path)


@pytest.mark.parametrize("point", ["x", 0.5, None, [], {}, {"loss": 1.0}, {"step": "1"}])
def test_a_point_that_is_none_is_refused(tmp_path, point) -> None:
    trace = made()
    trace.scores = [{"step": 1, "loss": None}, point]
    trace.save(tmp_path / "gates.npz")
    with pytest.raises(UsageError, match=r"is not a trace of gates: .* is no point of a curve"):
        load_trace(tmp_path)
