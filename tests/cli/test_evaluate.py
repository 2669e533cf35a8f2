from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from models.zoo import build


def test_masks_in_one_pass(cli: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    line = ["evaluate", folder, "--task", "pocket-sentiment", "--limit", 50, "--bootstrap", 50]
    masked = [*line, "--mask", "444", "--mask", "400", "--predictions", tmp_path / "p.parquet"]
    ran = cli(*masked, "--json")
    assert ran.code == 0, ran.err
    assert "guessing" in ran.err  # the model was never trained
    found = json.loads(ran.out)
    assert len(found["notes"]) == 1
    assert found["notes"][0] in ran.err
    assert found["n"] == 50
    assert [each["heads_kept"] for each in found["masks"]] == ["444", "400"]
    assert found["masks"][0]["score"] == found["score"]
    nothing, cost = (each["differences"]["accuracy"] for each in found["masks"])
    assert (nothing["metric"], nothing["value"]) == ("accuracy", 0)
    assert nothing["low"] < 0 < nothing["high"]
    assert cost["value"] == pytest.approx(found["masks"][1]["score"] - found["score"])
    assert cost["low"] <= cost["value"] <= cost["high"]
    assert pq.read_table(tmp_path / "p.parquet").num_rows == 150
    table = cli(*masked)
    assert "400" in table.out
    assert "95 % interval" in table.out
    assert "from all heads" in table.out
    assert " 0.000 [−" in table.out  # the same heads: no difference, and rows that were not seen
    plan = json.loads(cli(*line, "--dry-run", "--json").out)
    assert plan["rows"] == 50


def test_one_class_only(cli: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    (tmp_path / "dev.csv").write_text("text,label\n" + "the cat sings,0\n" * 9 + "a dog,1\n")
    (tmp_path / "train.csv").write_text("text,label\nthe cat sings,0\n")
    line = ["evaluate", folder, "--task", "classification", "--columns", "text", "--label", "label"]
    line += ["--data", tmp_path, "--split", "train"]
    ran = cli(*line, "--json")
    assert ran.code == 0, ran.err
    scores = json.loads(ran.out)["scores"]
    assert scores["matthews"]["value"] is scores["matthews"]["low"] is None
    assert scores["f1"]["value"] is None
    assert scores["accuracy"]["value"] in (0, 1)
    shown = cli(*line).out
    assert shown.count("undefined") == 2
    assert "nan" not in shown


def test_labels_that_the_model_does_not_know(
    cli: Callable[..., Any], folder: Path, tmp_path: Path
) -> None:
    for split in ("train", "dev"):
        (tmp_path / f"{split}.csv").write_text("text,label\na cat,yes\na dog,no\n")
    line = ["evaluate", folder, "--task", "classification", "--columns", "text", "--label", "label"]
    line += ["--data", tmp_path, "--json"]
    ran = cli(*line)
    assert ran.code == 2
    assert "labels are no, yes, and the model knows none of them" in ran.err
    scores = []
    for order in (("yes=LABEL_0", "no=LABEL_1"), ("yes=1", "no=0")):
        ran = cli(*line, "--labels", order[0], "--labels", order[1])
        assert ran.code == 0, ran.err
        scores.append(json.loads(ran.out)["score"])
    assert sum(scores) == 1


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (["--task", "pocket-sentimnt"], 2, "Did you mean 'pocket-sentiment'?"),
        (["--task", "pocket-sentiment", "--mask", "999"], 2, "keeps 9 heads in encoder layer 0"),
        (["--task", "pocket-sentiment", "--split", "tests"], 2, "Did you mean 'test'?"),
        (["--task", "pocket-entailment"], 2, "no class for"),
        (["--task", "pocket-corpus"], 2, "without a head for masked-lm: train it first"),
        (["--task", "sst2"], 4, "pass --data DIR"),
        (["--task", "pocket-sentiment", "--limit", "1", "--fraction", "0.5"], 2, "not both"),
    ],
    ids=lambda value: str(value)[-24:],
)
def test_wrong_usage(
    change: list[str], code: int, message: str, cli: Callable[..., Any], folder: Path
) -> None:
    ran = cli("evaluate", folder, *change)
    assert ran.code == code, ran.err
    assert message in ran.err


def test_no_tokenizer(cli: Callable[..., Any], tmp_path: Path) -> None:
    build("bert").save_pretrained(tmp_path)
    ran = cli("evaluate", tmp_path, "--task", "pocket-sentiment")
    assert ran.code == 4
    assert "No tokenizer in" in ran.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Pass --task (see headcount ls tasks), or --lm-eval"),
        (["--task", "sst2", "--against", "other"], "--against is for --lm-eval"),
        (["--task", "sst2", "--lm-eval", "piqa"], "leave out --task"),
        (["--lm-eval", "piqa", "--split", "dev"], "leave out --split"),
        (["--lm-eval", "piqa", "--data", "."], "leave out --data"),
    ],
)
def test_tasks_of_headcount_or_of_the_harness(
    options: list[str], message: str, cli: Callable[..., Any]
) -> None:
    ran = cli("evaluate", "pocket-bert", *options)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_the_harness_is_a_run(cli: Callable[..., Any]) -> None:
    plan = cli("evaluate", "pocket-bert", "--lm-eval", "a", "b", "--dry-run", "--json")
    assert json.loads(plan.out)["tasks"] == "a, b", plan.err
    refused = cli("evaluate", "pocket-bert", "--lm-eval", "piqa")
    assert (refused.code, "which writes no text" in refused.err) == (2, True)
