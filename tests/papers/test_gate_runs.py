"""Straight-through runs by gradient."""

from __future__ import annotations

import math

from headcount.papers.gate_runs import gradients, method_of, primary, score_before
from papers.planted import Planted, prune


def test_runs_are_told_apart_by_their_gradient() -> None:
    found = Planted()
    for coarse in ("linear", "softplus", "linear"):
        method = {"name": "straight-through", "coarse": coarse}
        found.add("gates", {"method": "straight-through"}, prune(0.5, method=method))
    found.add("gates", {"method": "random"}, prune(0.5))
    found.add("gates", {}, prune(0.5) | {"method": "meta"})
    runs = found.runs("gates")
    assert {name: len(own) for name, own in gradients(runs).items()} == {"softplus": 1, "linear": 2}
    assert len(primary(runs)) == 1
    assert (primary(runs[-2:]), method_of(runs[-1])) == ([], "meta")


def test_a_score_that_is_undefined_is_no_number() -> None:
    found = Planted()
    found.add("gates", {}, prune(0.5, before=0.7))
    found.add("gates", {}, prune(0.5, before=None))  # type: ignore[arg-type]
    first, second = found.runs("gates")
    assert score_before(first) == 0.7
    assert math.isnan(score_before(second))
