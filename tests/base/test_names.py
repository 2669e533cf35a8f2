from __future__ import annotations

import re
from pathlib import Path

import pytest

from headcount.base.errors import UsageError
from headcount.base.names import did_you_mean, require, unknown

SOURCE = Path(__file__).parents[2] / "src" / "headcount"


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("clusters", ["cluster", "random"], " Did you mean 'cluster'?"),
        ("cluster", ["cluster"], " Did you mean 'cluster'?"),
        ("zzz", ["cluster", "random"], ""),
        ("anything", [], ""),
        ("rand", iter(["random"]), " Did you mean 'random'?"),
    ],
)
def test_did_you_mean(name: str, known: list[str], hint: str) -> None:
    assert did_you_mean(name, known) == hint


def test_a_name_that_is_known_is_handed_on() -> None:
    assert require("stack", "cross", iter(["encoder", "cross"])) == "cross"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (unknown("No 'js2'", "js2", ["js", "cos"]), "No 'js2'. Did you mean 'js'? Known: js, cos."),
        (unknown("No x 'zzz'", "zzz", ["js", "cos"], has="It has"), "No x 'zzz'. It has: js, cos."),
        (unknown("No 'b2'", "b2", ["a", "b"], most=1), "No 'b2'. Did you mean 'b'? Known: a."),
        (unknown("No x 'js2'", "js2", ["js"], has=None), "No x 'js2'. Did you mean 'js'?"),
        (unknown("No x 'a'", "a", []), "No x 'a'. Known: none."),
        (unknown("No x 5", 5, ["cos"]), "No x 5. Known: cos."),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_near_and_what_is_known(error: UsageError, sentence: str) -> None:
    assert str(error) == sentence


def test_an_unknown_name_is_refused_by_its_kind() -> None:
    with pytest.raises(
        UsageError, match=r"^There is no stack 'crss'. Did you mean 'cross'\? Known:"
    ):
        require("stack", "crss", ["encoder", "cross"])


def test_the_refusal_is_written_once() -> None:
    """`Did you mean` and a hand-made list of what is known stand in names.py only."""
    copies = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if re.search(r"Did you mean '|hint = did_you_mean\(.*\n.*Known: ", path.read_text("utf-8"))
    ]
    assert copies == ["base/names.py"]
