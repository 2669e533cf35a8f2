"""Lists are typed one way in every command, and numbers of things stay whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.test_config import LINES, arguments, parsed, typed
from headcount.cli.values import MaskText, kind_of

LISTS = {
    " ".join(words): [
        argument.names[0]
        for argument in arguments(words)
        if kind_of(argument.hint)[1] and argument.names[0].startswith("--")
    ]
    for words in LINES
}


def found(words: list[str], typing: dict[str, list[str]]) -> dict[str, Any]:
    """What options of a command become, all typed in one line."""
    needed: list[str] = []
    leaves = {}
    for each in arguments(words):
        if each.names[0] in typing:
            leaves[each.names[0]] = each
        elif each.required and not each.children:
            needed += typed(each) if each.names[0].startswith("--") else ["m"]
    line = [token for tokens in typing.values() for token in tokens]
    bound = parsed([*words, *needed, *line])[2]
    return {name: list(value_of(leaf, bound)) for name, leaf in leaves.items()}


def value_of(leaf: Any, bound: Any) -> Any:
    if not leaf.keys:
        return bound.arguments[leaf.field_info.name]
    value = None
    for each in bound.arguments.values():
        for key in leaf.keys:  # a group may stand in a group
            each = getattr(each, key, None)
        value = value if each is None else each
    return value


@pytest.mark.parametrize("command", [command for command, names in LISTS.items() if names])
def test_commas_blanks_and_repeats_mean_the_same(command: str) -> None:
    words, names = command.split(), LISTS[command]
    kinds = {a.names[0]: kind_of(a.hint)[0] for a in arguments(words) if a.names[0] in names}
    pairs = {
        name: ("1", "2") if kind in (int, float) else ("en", "de") for name, kind in kinds.items()
    }
    want = {name: [kinds[name](each) for each in pair] for name, pair in pairs.items()}
    assert set(want) == set(names)
    assert found(words, {name: [name, *pair] for name, pair in pairs.items()}) == want
    apart = {name: [name, one, name, two] for name, (one, two) in pairs.items()}
    assert found(words, apart) == want
    for comma in (",", ", "):
        joined = {
            name: [name, comma.join(pair)]
            for name, pair in pairs.items()
            if kinds[name] is not MaskText
        }
        assert found(words, joined) == {name: want[name] for name in joined}


def test_lists_of_the_studies_are_lists() -> None:
    assert {"--methods", "--ratios"} <= set(LISTS["curve"])
    assert "--methods" in LISTS["compare"]
    assert "--languages" in LISTS["evaluate"]
    assert sum(map(len, LISTS.values())) > 60


def one(words: list[str], name: str, *values: str) -> Any:
    return found(words, {name: [name, *values]})[name]


def test_the_commas_of_a_mask_are_its_own() -> None:
    assert one(["evaluate"], "--mask", "12,12,0", "6x12") == ["12,12,0", "6x12"]


def test_a_file_with_a_comma_in_its_name(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a,b.png").write_text("")
    assert one(["redundancy"], "--figure", "a,b.png") == [Path("a,b.png")]
    assert one(["redundancy"], "--figure", "c,d.png") == [Path("c"), Path("d.png")]


def test_a_path_here_is_never_somebodys_home(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for out in ("./~/small", "./~small"):
        ran = cli("prune", "pocket", "--method", "random", "--ratio", "0.5", "--out", out)
        assert ran.code == 0, ran.err
        assert (tmp_path / out / "mask.json").is_file()
    assert not (tmp_path / "home").exists()
