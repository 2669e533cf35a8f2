from __future__ import annotations

import json
import sys

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


LINE = ("--task", "pocket-sentiment", "--limit", 40, "--samples", 16, "--draws", 20)
SMALL = (*LINE, "--ratios", "0.5,0.75", "--seeds", 2)


def test_files_and_table(cli, folder, tmp_path):
    ran = cli("curve", folder, *SMALL, "--out", tmp_path / "c", "--json")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    found = json.loads(ran.out)
    assert len(found["points"]) == 12
    assert {row["method"] for row in found["summary"]} == {"random", "cluster", "importance"}
    assert [len(layer) for layer in found["chance"]["0.5"]["encoder"]] == [4, 4, 4]
    names = {path.name for path in (tmp_path / "c").iterdir()}
    assert names == {
        "curve.png", "curve.svg", "curve.json", "curve.parquet", "chance.png", "chance.svg",
        "points.jsonl", "settings.json",
    }  # fmt: skip
    points = (tmp_path / "c" / "points.jsonl").read_text()
    table = cli("curve", folder, *SMALL, "--out", tmp_path / "c")
    assert "worst to best" in table.out
    assert (tmp_path / "c" / "points.jsonl").read_text() == points


def test_options_go_to_the_methods_that_have_them(cli, folder, tmp_path):
    more = ("--methods", "random,importance", "--within", "layer", "--normalize", "none")
    ran = cli("curve", folder, *SMALL, *more, "--out", tmp_path / "c", "--json")
    assert ran.code == 0, ran.err
    about = json.loads(ran.out)["about"]
    assert about["random.within"] == "layer"
    assert about["importance.normalize"] == "none"
    patterns = {p["pattern"] for p in json.loads(ran.out)["points"] if p["method"] == "random"}
    assert patterns == {"222", "111"}


def test_dry_run(cli, folder, tmp_path):
    ran = cli("curve", folder, *SMALL, "--out", tmp_path / "c", "--dry-run", "--json")
    assert json.loads(ran.out)["points"] == 13
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--ratios", "0.5,half"), 'unable to convert "half"'),
        (("--ratios", "2"), "between 0 and 1"),
        (("--methods", "layers", "--empty", "odd"), "has no curve"),
        (("--methods", "random,clustr"), "Did you mean 'cluster'"),
        (("--methods", "random", "--step", "0.1"), "--step is no option of random"),
        (("--seeds", "0"), "at least one seed"),
        (("--methods", "random", "--leave", "-1"), "not negative"),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_wrong_usage(cli, folder, tmp_path, more, said):
    ran = cli("curve", folder, *LINE, *more, "--out", tmp_path / "c")
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not (tmp_path / "c").exists()


def test_a_file_in_the_way(cli, folder, tmp_path):
    (tmp_path / "c").write_text("")
    ran = cli("curve", folder, *SMALL, "--out", tmp_path / "c")
    assert ran.code == 2
    assert "is a file" in ran.err


def test_without_matplotlib_only_the_figures_are_missing(cli, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    few = ("--methods", "random", "--ratios", "0.5", "--seeds", 1)
    ran = cli("curve", folder, *LINE, *few, "--out", tmp_path / "c")
    assert ran.code == 0, ran.err
    assert "There will be no figures." in ran.err
    assert "pip install 'headcount[report]'" in ran.err
    assert "worst to best" in ran.out
    names = {path.name for path in (tmp_path / "c").iterdir()}
    assert {"curve.json", "curve.parquet", "points.jsonl"} <= names
    assert not any(name.endswith(("png", "svg")) for name in names)
