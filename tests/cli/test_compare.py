from __future__ import annotations

import json

import pytest
from transformers import AutoTokenizer

from headcount.models.shipped import locate
from training.conftest import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("model")
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer).save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


TASK = ("--task", "pocket-sentiment", "--limit", 40, "--bootstrap", 20, "--steps", 2)


def test_a_table_and_the_file(cli, folder, tmp_path):
    line = ("compare", folder, *TASK, "--methods", "all-heads,random,subset", "--seeds", 2)
    ran = cli(*line, "--gate-lr", 0.2, "--out", tmp_path / "c")
    assert ran.code == 0, ran.err
    for word in (
        "all heads, as given",
        "all-heads",
        "random",
        "subset",
        "against random",
        "from the given model",
        "from all-heads",
        "rows measured",
    ):
        assert word in ran.out.replace("\n", " ")
    ran = cli(*line, "--gate-lr", 0.2, "--out", tmp_path / "c", "--json")
    found = json.loads(ran.out)
    assert [row["method"] for row in found["summary"]] == ["all-heads", "random", "subset"]
    assert found["about"]["subset.gate_lr"] == "0.2"
    trained = {row["method"]: row.get("against_all_heads") for row in found["summary"]}
    assert trained["all-heads"] is None
    by_seed = {(run["method"], run["seed"]): run["score"] for run in found["points"]}
    losses = [by_seed["subset", seed] - by_seed["all-heads", seed] for seed in (0, 1)]
    assert trained["subset"]["mean"] == pytest.approx(sum(losses) / 2)
    for run in found["points"]:
        assert run["difference"] == pytest.approx(run["score"] - found["full"]["score"])
        assert run["difference_low"] <= run["difference"] <= run["difference_high"]
    assert json.loads((tmp_path / "c" / "compare.json").read_text())["points"] == found["points"]


def test_a_tracker_that_is_not_there_is_said_before_the_work(cli, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("headcount.training.logging.find_spec", lambda name: None)
    for command, more in (("compare", ()), ("curve", ()), ("sweep", ("--over", "mu=1,2")),
                          ("prune", ("--ratio", 0.5)), ("train", ())):  # fmt: skip
        ran = cli(command, folder, *TASK[:2], *more, "--out", tmp_path / "c", "--log-to", "wandb")
        assert (command, ran.code) == (command, 3)
        assert "pip install wandb" in ran.err
        assert not (tmp_path / "c").exists()
    ran = cli("train", folder, *TASK[:2], "--out", tmp_path / "c", "--log-to", "mlflow,wandbb")
    assert ran.code == 2
    assert "Did you mean 'wandb'" in ran.err


def test_refusals(cli, folder, tmp_path):
    line = ("compare", folder, *TASK, "--out", tmp_path / "c")
    ran = cli(*line, "--methods", "random", "--gate-lr", 0.1)
    assert ran.code == 2
    assert "--gate-lr is not an option of random" in ran.err
    (tmp_path / "file").write_text("")
    ran = cli(*line[:-1], tmp_path / "file", "--methods", "random")
    assert ran.code == 2
    assert "is a file" in ran.err
    ran = cli(*line, "--methods", "random,subset", "--dry-run", "--json")
    assert json.loads(ran.out)["runs"] == 10
    assert not (tmp_path / "c").exists()
