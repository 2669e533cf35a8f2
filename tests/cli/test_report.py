"""`headcount report`: a page from folders, its answer on stdout, what was left out on stderr."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headcount.heads import Layout
from page.made import study

Cli = Callable[..., Any]
LAYOUT = Layout.of(encoder=[2, 2])


def test_a_page_and_its_answer(cli: Cli, tmp_path: Path) -> None:
    study(tmp_path / "files", LAYOUT, ratios=(0.5,), seeds=1)
    ran = cli("report", tmp_path / "files", "-o", tmp_path / "page.html")
    assert (ran.code, ran.err) == (0, "")
    assert "2 of the 4 heads of model can go." in ran.out
    first, gap, answer = ran.out.splitlines()
    assert first.endswith("files"), "a size and a sentence, and no table around one cell"
    assert (gap, answer.split(": ")[0]) == ("", "model on task")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    again = cli("report", tmp_path / "files", "--out", tmp_path / "page.html", "--json")
    assert json.loads(again.out)["subjects"][0]["name"] == "model on task"


def test_bad_files_are_named_and_the_page_is_made(cli: Cli, tmp_path: Path) -> None:
    study(tmp_path / "files", LAYOUT, ratios=(0.5,), seeds=1)
    (tmp_path / "files" / "bench.json").write_text("{", encoding="utf-8")
    ran = cli("report", tmp_path / "files", "-o", tmp_path / "page.html")
    assert ran.code == 0
    assert ran.err.count("\n") == 1
    assert "bench.json" in ran.err


def test_refusals_have_their_codes(cli: Cli, tmp_path: Path) -> None:
    assert cli("report", tmp_path / "none", "-o", tmp_path / "page.html").code == 4
    (tmp_path / "empty").mkdir()
    ran = cli("report", tmp_path / "empty", "-o", tmp_path / "page.html")
    assert (ran.code, ran.err.count("\n")) == (4, 1)
    assert cli("report", tmp_path / "empty", "-o", tmp_path).code == 2
    assert cli("report").code == 2
    assert not (tmp_path / "page.html").exists()
