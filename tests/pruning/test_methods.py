from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.pruning.methods import (
    METHODS,
    as_method,
    make_method,
    name_of,
    read_method,
)

NAMES = [entry.name for entry in METHODS]
ASKED = {"pattern": {"keep": "1"}, "layers": {"empty": "odd"}}
"""What some cannot do without."""


@pytest.mark.parametrize("name", NAMES)
def test_every_method_can_be_had_by_its_name(name: str) -> None:
    method = as_method(name, ASKED.get(name))
    assert name_of(method) == name
    assert METHODS[name].needs in ("nothing", "inputs", "calibration", "labels", "training")
    assert method.ratio in ("needed", "free", "none")
    assert callable(method.prepare)


def test_options_are_those_of_the_method() -> None:
    assert make_method("importance", {"step": 0.25}).step == 0.25  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=r"'importance' has no option 'setp'. Did you mean 'step'"):
        make_method("importance", {"setp": 1})
    with pytest.raises(UsageError, match="go into it, not beside it: step"):
        as_method(make_method("importance"), {"step": 1})
    with pytest.raises(UsageError, match="is no method"):
        as_method(7)  # type: ignore[arg-type]


def test_a_file_names_a_method_alone_or_with_its_options() -> None:
    assert read_method("surgeon", "x.toml") == make_method("surgeon")
    found = read_method({"name": "importance", "step": 0.5}, "x.toml")
    assert found == make_method("importance", {"step": 0.5})
    for wrong in ({}, {"name": 3}, 5):
        with pytest.raises(UsageError, match=r"x\.toml names no method"):
            read_method(wrong, "x.toml")
