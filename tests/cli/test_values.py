"""Lists are typed one way in every command, and numbers of things stay whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.test_config import LINES, arguments, parsed, typed
from headcount.cli.values import MaskText, kind_of

LISTS = [
    (words, argument.names[0])
    for words in LINES
    for argument in arguments(words)
    if kind_of(argument.hint)[1] and argument.names[0].startswith("--")
]


def found(words: list[str], name: str, *values: str) -> Any:
    """What the option of a command becomes."""
    needed: list[str] = []
    leaf = None
    for each in arguments(words):
        if each.names[0] == name:
            leaf = each
        elif each.required and not each.children:
            needed += typed(each) if each.names[0].startswith("--") else ["m"]
    bound = parsed([*words, *needed, *values])[2]
    assert leaf is not None
    value = bound.arguments[leaf.field_info.name] if not leaf.keys else None
    if leaf.keys:
        for each in bound.arguments.values():
            for key in leaf.keys:  # a group may stand in a group
                each = getattr(each, key, None)
            value = value if each is None else each
    return list(value)


@pytest.mark.parametrize(("words", "name"), LISTS, ids=lambda value: str(value))
def test_commas_blanks_and_repeats_mean_the_same(words: list[str], name: str) -> None:
    kind = next(kind_of(a.hint)[0] for a in arguments(words) if a.names[0] == name)
    one, two = ("1", "2") if kind in (int, float) else ("en", "de")
    want = [kind(one), kind(two)]
    assert found(words, name, name, one, two) == want
    assert found(words, name, name, one, name, two) == want
    if kind is not MaskText:
        assert found(words, name, name, f"{one},{two}") == want
        assert found(words, name, name, f"{one}, {two}") == want


def test_lists_of_the_studies_are_lists() -> None:
    assert (["curve"], "--methods") in LISTS
    assert (["curve"], "--ratios") in LISTS
    assert (["compare"], "--methods") in LISTS
    assert (["evaluate"], "--languages") in LISTS


def test_the_commas_of_a_mask_are_its_own() -> None:
    assert found(["evaluate"], "--mask", "--mask", "12,12,0", "6x12") == ["12,12,0", "6x12"]


def test_a_file_with_a_comma_in_its_name(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a,b.png").write_text("")
    assert found(["redundancy"], "--figure", "--figure", "a,b.png") == [Path("a,b.png")]
    assert found(["redundancy"], "--figure", "--figure", "c,d.png") == [Path("c"), Path("d.png")]
