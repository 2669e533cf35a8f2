"""Axes × axes."""

from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.studies.grid import axes_of, cells, matches, merged, named, put


def test_axes_are_taken_by_their_short_names_and_from_the_grid_in_order():
    group = {
        "seeds": 2,
        "kind": "prune",
        "methods": ["a"],
        "grid": {"options.calibration.samples": [1]},
    }
    assert axes_of(group) == {"seed": [0, 1], "options.method": ["a"],
                              "options.calibration.samples": [1]}  # fmt: skip


def test_every_combination_and_which_are_meant():
    axes = {"options.method": ["a", {"name": "b", "x": 1}], "seed": [0, 1]}
    found = [(named(each["options.method"]), each["seed"]) for each in cells(axes)]
    assert found == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    last = list(cells(axes))[-1]
    assert matches(last, {"method": "b", "seed": [1, 2]})
    assert not matches(last, {"method": "b", "seed": 2})
    assert not matches(last, {"ratio": 2})


def test_an_axis_may_set_several_places():
    data: dict = {}
    put(data, "options.training.attention_dropout, options.training.hidden_dropout", 0.3)
    assert data == {"options": {"training": {"attention_dropout": 0.3, "hidden_dropout": 0.3}}}


@pytest.mark.parametrize("values", [[], [1, 1]])
def test_an_axis_has_different_values(values):
    with pytest.raises(UsageError, match="seeds has"):
        axes_of({"seeds": values})


def test_values_go_deep_and_lose_nothing():
    data: dict = {"options": {"method": "importance", "ratio": 0.5}}
    put(data, "options.method.step", 0.1)
    put(data, "options.scoring.limit", 9)
    assert data["options"] == {"method": {"name": "importance", "step": 0.1}, "ratio": 0.5,
                               "scoring": {"limit": 9}}  # fmt: skip
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}) == {"a": {"b": 1, "c": 3}}
