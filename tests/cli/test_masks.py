"""A mask is typed alike wherever one is taken: counts, JSON, or a file like mask.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headcount.heads import Layout, Mask
from headcount.models.find import layout
from headcount.models.load import load

TASK = ("--task", "pocket-sentiment", "--size", 16)
KEPT = Mask.parse("321", Layout.of(encoder=[4] * 3)).drop([("encoder", 0, 0)])


@pytest.fixture(scope="module", name="folder")
def with_a_mask(folder: Path) -> Path:
    (folder / "mask.json").write_text(json.dumps(KEPT.to_json()))
    return folder


def test_evaluate(cli: Any, folder: Path) -> None:
    line = (
        "evaluate",
        folder,
        *TASK,
        "--limit",
        16,
        "--bootstrap",
        9,
        "--json",
        "--mask",
        folder / "mask.json",
    )
    ran = cli(*line, "4,4,0")
    assert ran.code == 0, ran.err
    assert [each["heads_kept"] for each in json.loads(ran.out)["masks"]] == ["221", "440"]


@pytest.mark.parametrize("option", ["--mask", "--keep"])
def test_importance(cli: Any, folder: Path, option: str) -> None:
    ran = cli("importance", folder, *TASK, option, folder / "mask.json", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["n"] == 16


@pytest.mark.parametrize(
    "words",
    [("remove", "--mask"), ("remove", "--keep"), ("prune", "--method", "pattern", "--mask")],
)
def test_what_is_cut(cli: Any, folder: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    command, *option = words
    ran = cli(command, folder, *option, folder / "mask.json", "--out", tmp_path / "new", "--json")
    assert ran.code == 0, ran.err
    assert Mask.from_json(json.loads(ran.out)["mask"]) == KEPT
    assert [heads for stack in layout(load(tmp_path / "new")).stacks for heads in stack.heads] == [
        2, 2, 1,
    ]  # fmt: skip


@pytest.mark.parametrize("command", ["importance", "evaluate"])
def test_a_file_that_is_not_there(cli: Any, folder: Path, command: str) -> None:
    ran = cli(command, folder, *TASK, "--mask", "no.json")
    assert ran.code == 4
    assert "Cannot read the mask no.json" in ran.err
