from __future__ import annotations

import json
import sys

import pytest
from transformers import AutoTokenizer

from headcount.models.shipped import locate
from training.conftest import pets, tiny


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    """The start of every line: a model, and pets as train.csv and dev.csv."""
    made = tmp_path_factory.mktemp("pets")
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer).save_pretrained(made)
    tokenizer.save_pretrained(made)
    for split in ("train", "dev"):
        rows = pets().load(split)
        lines = [f"{text},{label}" for text, label in zip(rows.texts[0], rows.labels, strict=True)]
        (made / f"{split}.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    data = ("--train", made / "train.csv", "--dev", made / "dev.csv", "--columns", "text")
    more = ("--label", "label", "--bootstrap", 20, "--steps", 3)
    return ("sweep", made, "--task", "classification", *data, *more)


def test_files_and_table(cli, line, tmp_path):
    line += ("--over", "mu=1e-6,50", "--gate-lr", 0.6, "--seeds", 2)
    ran = cli(*line, "--out", tmp_path / "s", "--json")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    found = json.loads(ran.out)
    assert [(row["value"], row["all_closed"]) for row in found["summary"]] == [(1e-6, 0), (50, 2)]
    assert (found["about"]["over"], found["about"]["straight-through.gate_lr"]) == ("mu", "0.6")
    assert found["trends"]["sparsity"] == {
        "rho": pytest.approx(1), "p": pytest.approx(1 / 3), "n": 4,
    }  # fmt: skip
    assert {path.name for path in (tmp_path / "s").iterdir()} == {
        "sweep.png", "sweep.svg", "sweep.json", "sweep.parquet", "full.json", "runs",
        "studies", "claims", "work",
    }  # fmt: skip
    runs = {path: path.read_bytes() for path in (tmp_path / "s" / "runs").rglob("record.json")}
    assert len(runs) == 4
    ran = cli(*line, "--out", tmp_path / "s")
    trend = "Spearman correlation of mu and sparsity: +1.000, p = 0.333"
    for word in ("all heads", "in 2 of 2", trend):
        assert word in ran.out
    again = {path: path.read_bytes() for path in (tmp_path / "s" / "runs").rglob("record.json")}
    assert again == runs
    ran = cli(*line, "--out", tmp_path / "s", "--gate-momentum", 0.5)
    assert ran.code == 2
    assert "gate_momentum was not there, now 0.5" in ran.err


def test_an_option_is_named_as_elsewhere(cli, line, tmp_path):
    line += ("--method", "hard-concrete", "--over", "gate-lr=0.1,0.2")
    ran = cli(*line, "--seeds", 1, "--out", tmp_path / "s")
    assert ran.code == 0, ran.err
    assert "gate-lr" in ran.out
    assert "the same in all 2 runs" in ran.out  # so short a run closes nothing
    ran = cli(*line, "--out", tmp_path / "new", "--dry-run", "--json")
    assert json.loads(ran.out)["runs"] == 6
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--over", "mu"), "'mu' is not an option with values"),
        (("--over", "=0.1,0.2"), "is not an option with values"),
        (("--over", "mu=0.1,lots"), "'lots' in --over mu=0.1,lots is not a number"),
        (("--over", "gate-lrr=0.1,0.2"), "Did you mean 'gate_lr'"),
        (("--over", "coarse=0.1,0.2"), "is no number of the method"),
        (("--over", "mu=0.1"), "at least two values"),
        (("--over", "mu=0.1,1e-1"), "named twice"),
        (("--over", "mu=0.1,0"), "mu must be above 0"),
        (("--over", "mu=0.1,inf"), "inf is no value"),
        (("--over", "mu=0.1,1", "--mu", "0.5"), "cannot also be set"),
        (("--over", "mu=0.1,1", "--method", "random"), "trains no gates"),
        (("--over", "mu=0.1,1", "--method", "stright-through"), "Did you mean 'straight-through'"),
        (("--over", "hot=0.5,1", "--method", "subset"), "exactly as many heads"),
        (("--over", "mu=0.1,1", "--seeds", "0"), "at least one seed"),
        (("--over", "mu=0.1,1", "--beta", "0.5"), "--beta is not an option of straight-through"),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_wrong_usage(cli, line, tmp_path, more, said):
    ran = cli(*line, *more, "--out", tmp_path / "s")
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not (tmp_path / "s").exists()


def test_it_works_in_one_process(cli, line, monkeypatch, tmp_path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    ran = cli(*line, "--over", "mu=0.1,1", "--out", tmp_path / "s")
    assert ran.code == 2
    assert "sweep keeps its runs in one folder" in ran.err
    assert not (tmp_path / "s").exists()


def test_a_file_in_the_way(cli, line, tmp_path):
    (tmp_path / "s").write_text("")
    ran = cli(*line, "--over", "mu=0.1,1", "--out", tmp_path / "s")
    assert ran.code == 2
    assert "is a file" in ran.err


def test_without_matplotlib_only_the_figures_are_missing(cli, line, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = cli(*line, "--over", "mu=1e-6,1e-5", "--seeds", 1, "--out", tmp_path / "s")
    assert ran.code == 0, ran.err
    assert "There will be no figures." in ran.err
    assert (tmp_path / "s" / "sweep.json").exists()
    assert not (tmp_path / "s" / "sweep.png").exists()
