from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
from headcount.behaviour.words import ATTENTION
from tasks.media import write_images, write_vit
from tasks.sounds import write_ctc

Cli = Callable[..., Any]
FEW = ("--random", 6, "--max-length", 16)


def test_a_page_a_file_and_a_figure(cli: Cli, tmp_path: Path) -> None:
    out, figure = tmp_path / "roles.json", tmp_path / "roles.svg"
    ran = cli("roles", "pocket", *FEW, "--out", out, "--figure", figure)
    assert ran.code == 0, ran.err
    assert "on 6 inputs (random tokens, each row twice)" in ran.out
    assert "encoder 5" in ran.out
    assert f"Written to {out}." in ran.out
    assert "\x1b" not in ran.out, "no colour into a pipe"
    assert {path.name for path in tmp_path.iterdir()} == {"roles.json", "roles.svg"}
    record = hc.load_record(out)
    assert record.run.kind == "roles"
    found = hc.load_roles(out)
    assert list(found.quantities) == [*ATTENTION, "replaceable", "kilobytes"]
    assert (found.count, len(found.examples)) == (6, 3 * len(found.layout))
    again = cli("run", out, "--json")
    assert again.code == 0, again.err
    told = json.loads(again.out)
    assert told["quantities"] == json.loads(out.read_text())["quantities"]
    assert told["id"] == record.id


def test_a_file_of_another_question_stays(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "roles.json"
    line = ["roles", "pocket", *FEW, "--examples", 0, "--out", out]
    assert cli(*line).code == 0
    assert cli(*line).code == 0  # the same question
    ran = cli(*line, "--seed", 1)
    assert ran.code == 2
    assert f"{out} exists, and is not the result of the same run" in ran.err
    assert hc.load_record(out).run.seed == 0
    assert cli(*line, "--seed", 1, "--overwrite").code == 0
    assert hc.load_record(out).run.seed == 1


def test_alone_and_time(cli: Cli, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("words,kind\n" + "the small king,a\na queen,b\n" * 12)
    where = ["--data", file, "--columns", "words", "--label", "kind", "--labels", "a=LABEL_0"]
    where += ["--labels", "b=LABEL_1"]
    line = ["roles", folder, "--task", "classification", *where, "--time", "--alone", "--limit", 6]
    ran = cli(*line, "--examples", 0, "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    names = ["milliseconds", "cost_alone", "score_alone", "cost_alone_repaired"]
    for name in [*names, "score_alone_repaired"]:
        each = told["quantities"][name]
        assert len(each["values"]) == len(each["low"]) == len(told["roles"]) == 12
        assert None not in each["values"]
    assert "8 x 64 tokens" in told["quantities"]["milliseconds"]["what"]
    assert told["rows"]["evaluation"]["sampled"] == 6
    assert told["examples"] == []


def test_examples_before_and_after_a_cut(cli: Cli, tmp_path: Path) -> None:
    small, out = tmp_path / "small", tmp_path / "roles.json"
    assert cli("remove", "pocket", "--keep", "6x4", "--out", small).code == 0
    ran = cli("roles", "pocket", small, *FEW, "--examples", 1, "--out", out)
    assert ran.code == 0, ran.err
    examples = json.loads(out.read_text())["examples"]
    assert sum(each["after"] == {"removed": True} for each in examples) == len(examples) // 2
    assert hc.load_record(out).run.options.pruned == str(small)
    ran = cli("roles", "pocket", tmp_path / "none", *FEW)
    assert ran.code == 4


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (["--alone"], 2, "rows of a task: pass --task"),
        (["--limit", 3], 2, "--limit is of the rows that --alone scores"),
        (["--task", "cola", "--random", 3], 2, "one of --task, --calibration and --random"),
        (["--calibration", "nowhere.txt"], 4, "There is no file 'nowhere.txt'"),
        (["--examples", -1], 2, "not negative"),
        (["--figure", "a.pdf"], 2, "ends in .png or .svg"),
        (["--task", "colla"], 2, "Did you mean 'cola'?"),
        (["--data", "x"], 2, "need --task"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_wrong_usage(change: list[Any], code: int, message: str, cli: Cli) -> None:
    ran = cli("roles", "pocket", *change)
    assert ran.code == code, ran.err
    assert message in ran.err
    assert ran.out == ""


def test_heads_of_a_model_of_images_have_roles_of_patches(cli: Cli, tmp_path: Path) -> None:
    data, model = write_images(tmp_path / "images", 2, 2), write_vit(tmp_path / "vit")
    out = tmp_path / "roles.json"
    ran = cli("roles", model, "--task", "image-classification", "--data", data, "--out", out)
    assert ran.code == 0, ran.err
    found = hc.load_roles(out)
    assert found.quantities["reach"].unit == "patches"
    assert found.examples == ()
    assert cli("roles", model, "--random", 3).code == 0  # on noise


def test_a_model_of_sound_has_no_roles(cli: Cli, tmp_path: Path) -> None:
    ran = cli("roles", write_ctc(tmp_path / "wav"))
    assert ran.code == 5
    assert "Roles are about tokens or patches" in ran.err


def test_a_folder_is_no_file_to_write(cli: Cli, tmp_path: Path) -> None:
    ran = cli("roles", "pocket", *FEW, "--out", tmp_path)
    assert ran.code == 2
    assert "is a folder, not a file to write" in ran.err
