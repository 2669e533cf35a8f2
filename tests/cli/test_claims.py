"""`headcount claims`: a verdict for every claim, from the runs that are there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
from papers.filled import filled

Cli = Callable[..., Any]


@pytest.fixture
def there(tmp_path: Path) -> Path:
    filled(tmp_path, "tuned", "random")
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "pocket-weak-link-table-4.json").write_text("{}")
    return tmp_path


def test_every_claim_has_a_line(cli: Cli, there: Path) -> None:
    ran = cli("claims", there, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert [each["code"] for each in found][:2] == ["RA1", "RA2"]
    assert len(found) == 36
    assert {each["code"]: each["verdict"] for each in found}["WL4"] == "does not hold"
    assert found == json.loads(json.dumps([each.to_json() for each in hc.claims(there)]))
    said = cli("claims", there)
    assert "does not hold" in said.out
    assert "35 not run" in said.err


def test_power_has_the_undecided_only(cli: Cli, there: Path) -> None:
    ran = cli("claims", there, "--power", "--json")
    assert (ran.code, json.loads(ran.out)) == (0, [])  # WL4 is decided, the rest has no runs


def test_scales_that_are_not_named_are_left_out(cli: Cli, there: Path) -> None:
    assert len(json.loads(cli("claims", there, "--scale", "pocket", "--json").out)) == 36
    assert cli("claims", there, "--scale", "small").code == 4
    assert json.loads(cli("claims", there, "--scale", "small", "--power", "--json").out) == []
    ran = cli("claims", there, "--scale", "smal")
    assert ran.code == 2
    assert "small" in ran.err


def test_without_runs_it_says_how_to_make_them(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cli("claims")
    assert ran.code == 4
    assert "headcount reproduce --all" in ran.err
    assert cli("claims", tmp_path).code == 2
