"""`headcount reproduce`: what there is, what it takes, and what comes out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
from headcount.papers import scales
from papers.filled import filled

Cli = Callable[..., Any]


def test_the_list_names_every_table_and_figure(cli: Cli) -> None:
    ran = cli("reproduce", "--list", "--json")
    found = json.loads(ran.out)
    assert ran.code == 0
    assert len(found) >= 45
    assert all({"paper", "item", "what", "claims", "scales"} <= set(each) for each in found)
    assert "figure-20" in cli("reproduce", "redundancy", "--list").out


def test_an_item_is_what_the_function_gives(cli: Cli, tmp_path: Path) -> None:
    filled(tmp_path, "tuned", "frozen")
    ran = cli("reproduce", "lay-off", "frozen", "--drawn", "--out", tmp_path, "--json")
    assert ran.code == 0, ran.err
    (made,) = hc.reproduce("lay-off", "frozen", out=tmp_path, run=False)
    assert json.loads(ran.out) == json.loads(json.dumps(made.to_json()))
    shown = cli("reproduce", "lay-off", "frozen", "--drawn", "--out", tmp_path)
    assert "Frozen layers" in shown.out


@pytest.fixture
def few_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The scales with random inputs that are few and short."""
    shutil.copytree(scales.FOLDER, tmp_path / "scales")
    path = tmp_path / "scales" / "pocket.yaml"
    text = path.read_text(encoding="utf-8")
    few = text.replace("random: 200, max_length: 48", "random: 4, max_length: 8")
    assert few != text
    path.write_text(few, encoding="utf-8")
    monkeypatch.setattr(scales, "FOLDER", tmp_path / "scales")
    scales.read_written_scale.cache_clear()
    yield
    scales.read_written_scale.cache_clear()


@pytest.mark.usefixtures("few_inputs")
def test_runs_are_carried_out_and_found_again(cli: Cli, tmp_path: Path) -> None:
    asked = ("reproduce", "redundancy", "figure-18", "--out", tmp_path)
    ran = cli(*asked, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert (found["done"], found["total"]) == (1, 1)
    assert [row[0] for row in found["sheets"][0]["rows"]] == ["pre-trained"] * 7
    assert any(name.endswith(".svg") for name in found["files"])
    plan = json.loads(cli(*asked, "--plan", "--json").out)
    assert (plan["runs"], plan["done"], plan["hours"]) == (1, 1, 0.0)


def test_what_is_missing_is_said_and_the_exit_code_is_6(cli: Cli, tmp_path: Path) -> None:
    ran = cli("reproduce", "weak-link", "grid", "--drawn", "--out", tmp_path)
    assert ran.code == 6
    assert "Not there yet: 0 of 10 runs are done." in ran.out


def test_the_page_is_written_from_runs(cli: Cli, tmp_path: Path) -> None:
    runs, page = tmp_path / "runs", tmp_path / "reproduction.md"
    assert cli("reproduce", "redundancy", "figure-8", "--plan", "--out", runs).code == 0
    filled(runs, "chance")
    (runs / "studies").mkdir(parents=True, exist_ok=True)
    (runs / "studies" / "pocket.json").write_text("{}")
    ran = cli("reproduce", "--write-docs", page, "--out", runs, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["counts"]["not run"] == 35
    assert "### redundancy figure-8" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "--list shows them"),
        (("weaklink", "table-4"), 2, "Did you mean 'weak-link'"),
        (("weak-link", "table-9"), 2, "Did you mean 'table-"),
        (("weak-link", "grid", "--scale", "tiny"), 2, "There is no scale 'tiny'"),
        (("lay-off", "frozen", "--scale", "paper"), 5, "no GPU here"),
        (("lay-off", "frozen", "--scale", "small"), 4, "--weights DIR"),
    ],
)
def test_wrong_lines_have_one_sentence(
    words: tuple[str, ...], code: int, said: str, cli: Cli, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name in ("HEADCOUNT_DATA", "HEADCOUNT_WEIGHTS"):
        monkeypatch.delenv(name, raising=False)
    ran = cli("reproduce", *words, "--out", tmp_path)
    assert ran.code == code, ran.err
    assert said in ran.err
    assert ran.err.count("\n") == 1
