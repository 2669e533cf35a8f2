from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from headcount.base.errors import UsageError
from headcount.base.options import docs_of, read, to_plain, types_of
from headcount.learned.methods import StraightThrough
from headcount.tasks.calibration import Calibration
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring


@dataclass(frozen=True, kw_only=True)
class Inner:
    """Inside."""

    rate: float = 0.5
    """How fast."""


@dataclass(frozen=True, kw_only=True)
class Outer(Inner):
    """Outside."""

    name: str
    """What it is called,
    over two lines."""
    steps: int | None = None
    flag: bool = False
    """Whether."""
    kind: Literal["a", "b"] = "a"
    paths: tuple[Path, ...] = ()
    pair: tuple[int, str] | None = None
    inner: Inner | None = None
    late: Inner = field(default_factory=Inner)


FULL = Outer(
    name="x", steps=3, flag=True, kind="b", paths=(Path("a"), Path("b")), pair=(1, "z"),
    inner=Inner(rate=2.0),
)  # fmt: skip


@pytest.mark.parametrize("value", [FULL, Outer(name="y")])
def test_plain_data_gives_the_value_back(value: Outer) -> None:
    import json

    assert read(Outer, json.loads(json.dumps(to_plain(value))), "here") == value


def test_all_mistakes_are_told_at_once() -> None:
    wrong = {"nam": "x", "steps": 1.5, "flag": "yes", "kind": "c", "paths": "a", "pair": [1]}
    with pytest.raises(UsageError) as told:
        read(Outer, wrong, "here")
    text = str(told.value)
    assert text.startswith("In here: there is no option 'nam'. Did you mean 'name'?")
    assert "steps: 1.5 is not a whole number." in text
    assert "flag: 'yes' is not true or false." in text
    assert "kind: 'c' is none of a, b." in text
    assert "paths: 'a' is not a list." in text
    assert "pair: [1] has not 2 parts." in text


@pytest.mark.parametrize(("value", "right"), [(True, False), (2, True), (2.0, True), ("2", False)])
def test_a_number_is_a_number(value: object, right: bool) -> None:
    if right:
        assert read(Inner, {"rate": value}, "here") == Inner(rate=2.0)
    else:
        with pytest.raises(UsageError, match="is not a number"):
            read(Inner, {"rate": value}, "here")


def test_a_mistake_inside_says_where() -> None:
    with pytest.raises(UsageError, match=r"In here\.inner: there is no option 'rat'"):
        read(Outer, {"name": "x", "inner": {"rat": 1}}, "here")
    with pytest.raises(UsageError, match="here is a list, not options by name"):
        read(Outer, [], "here")


def test_help_is_the_docstring_below_the_field() -> None:
    docs = docs_of(Outer)
    assert docs["rate"] == "How fast."
    assert docs["name"] == "What it is called, over two lines."
    assert "steps" not in docs
    assert list(types_of(Outer))[:3] == ["rate", "name", "steps"]


def test_a_text_for_a_number_is_one_sentence_in_every_class_of_options() -> None:
    for kind, options, said in (
        (Scoring, {"limit": "50"}, "Scoring.limit is a number, not the text '50'."),
        (Scoring, {"seed": "1"}, "Scoring.seed is a whole number, not the text '1'."),
        (TrainOptions, {"epochs": "3"}, "TrainOptions.epochs is a number, not the text '3'."),
        (Calibration, {"samples": "9"}, "Calibration.samples is a whole number, not the text '9'."),
        (StraightThrough, {"mu": "0.1"}, "StraightThrough.mu is a number, not the text '0.1'."),
        (TrainOptions, {"like_lengths": "no"}, "like_lengths is true or false, not the text 'no'."),
    ):
        with pytest.raises(UsageError, match=re.escape(said)):
            kind(**options)
    assert Scoring(split="dev", limit=0.5).split == "dev"
    assert TrainOptions(precision="fp32", freeze=None).freeze is None
