from __future__ import annotations

import json
import shutil
import sys

import pytest
import torch
from transformers import AutoTokenizer

from headcount.cli.main import main
from headcount.models.load import load
from headcount.models.shipped import locate
from headcount.tasks.metrics import Difference
from training.conftest import pets, tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("model")
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer).save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


LINE = ("--task", "pocket-sentiment", "--limit", 40, "--calibration-samples", 16, "--bootstrap", 20)
SMALL = (*LINE, "--ratios", "0.5,0.75", "--seeds", 2)


def test_files_and_table(cli, folder, tmp_path):
    ran = cli("curve", folder, *SMALL, "--out", tmp_path / "c", "--json")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    found = json.loads(ran.out)
    assert len(found["points"]) == 12
    assert {row["method"] for row in found["summary"]} == {"random", "cluster", "importance"}
    assert [len(layer) for layer in found["frequency"]["0.5"]["encoder"]] == [4, 4, 4]
    names = {path.name for path in (tmp_path / "c").iterdir()}
    assert names == {
        "curve.png", "curve.svg", "curve.json", "curve.parquet", "frequency.png", "frequency.svg",
        "full.json", "runs", "studies", "claims", "work",
    }  # fmt: skip
    runs = {path: path.read_bytes() for path in (tmp_path / "c" / "runs").rglob("record.json")}
    assert len(runs) == 12
    table = cli("curve", folder, *SMALL, "--out", tmp_path / "c")
    assert "worst to best" in table.out
    for row in found["summary"]:
        assert row["lost"] == str(Difference(**row["difference"]))
        assert row["lost"] in table.out
    assert "Calibration data: up to 16 rows of train; scores: 40 rows of dev." in table.out
    again = {path: path.read_bytes() for path in (tmp_path / "c" / "runs").rglob("record.json")}
    assert again == runs


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
        (("--ratios", "0.5,half"), "is a number, not 'half'"),
        (("--ratios", "2"), "between 0 and 1"),
        (("--methods", "layers", "--empty", "odd"), "has no curve"),
        (("--methods", "all-heads"), "'all-heads' has no ratio, so it has no curve"),
        (("--methods", "random,clustr"), "Did you mean 'cluster'"),
        (("--methods", "random", "--step", "0.1"), "--step is not an option of random"),
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
    assert {"curve.json", "curve.parquet", "runs"} <= names
    assert not any(name.endswith(("png", "svg")) for name in names)


@pytest.fixture(scope="module")
def own(tmp_path_factory, folder):
    """A model and data of one's own, and a curve of them; the start of its line."""
    made = tmp_path_factory.mktemp("own")
    shutil.copytree(folder, made / "model")
    for split in ("train", "dev"):
        rows = pets(rows=24).load(split)
        lines = [f"{text},{label}" for text, label in zip(rows.texts[0], rows.labels, strict=True)]
        (made / f"{split}.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    (made / "inputs").write_text("the king sees a small cat\nthe queen sees the dog\n")
    line = [
        "curve",
        made / "model",
        "--task",
        "classification",
        "--data",
        made,
        "--columns",
        "text",
    ]
    line += ["--label", "label", "--calibration", made / "inputs", "--bootstrap", 5, "--seeds", 1]
    line += ["--methods", "random", "--ratios", 0.5, "--out", made / "curve"]
    assert main([str(word) for word in line]) == 0
    return made, line


def rewritten(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        (("dev.csv", "queen", "king"), (), "scored was 24 rows"),
        (("train.csv", "queen", "king"), (), "rows was 24 rows"),
        (("inputs", "king", "queen"), (), "calibration was "),
        (("model/config.json", '"gelu"', '"relu"'), (), "config.hidden_act was gelu, now relu"),
        (("model/tokenizer.json", '"avoid"', '"avoids"'), (), "tokenizer was"),
        (None, ("--seed", 9), "seed was 0, now 9"),
        (None, ("--limit", 9), "limit was None, now 9"),
        (None, ("--max-length", 9), "max_length was 128, now 9"),
        (None, ("--recover",), "repair was None, now recover"),
        (None, ("--within", "layer"), "random.within was not there, now layer"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_curve_never_goes_on_with_something_else(cli, own, change, more, said):
    made, line = own
    if change is None:
        ran = cli(*line, *more)
    else:
        kept = (made / change[0]).read_text()
        rewritten(made / change[0], *change[1:])
        ran = cli(*line, *more)
        (made / change[0]).write_text(kept)
    assert ran.code == 2
    assert said in ran.err
    assert ", now " in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_the_same_curve_goes_on(cli, own):
    _, line = own
    ran = cli(*line)
    assert "rows of those that were given; scores: 24 rows of dev." in ran.out
    assert (ran.code, ran.err) == (0, "")


def test_another_size_of_a_made_task_is_refused(cli, folder, tmp_path):
    line = ("curve", folder, *LINE, "--methods", "random", "--ratios", 0.5, "--seeds", 1)
    assert cli(*line, "--out", tmp_path / "c").code == 0
    ran = cli(*line, "--size", 50, "--out", tmp_path / "c")
    assert ran.code == 2
    assert "rows was 4000 rows" in ran.err


def test_a_model_that_is_not_a_number_has_no_curve(cli, folder, tmp_path):
    model = load(folder)
    with torch.no_grad():
        model.bert.encoder.layer[0].output.dense.weight[0, 0] = float("nan")
    model.save_pretrained(tmp_path / "nan")
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "nan")
    ran = cli("curve", tmp_path / "nan", *SMALL, "--methods", "random", "--out", tmp_path / "c")
    assert ran.code != 0
    assert "NaN" in ran.err


def keys_of(folder):
    return {path.parent.name for path in (folder / "runs").rglob("record.json")}


def test_by_any_executor_it_is_the_same_and_a_study_file_finds_it(cli, folder, tmp_path):
    few = (*LINE, "--methods", "random,importance", "--ratios", "0.5,0.75", "--seeds", 1)
    here, there = tmp_path / "here", tmp_path / "there"
    ran = cli("curve", folder, *few, "--out", here, "--json")
    assert ran.code == 0, ran.err
    many = cli(
        "curve", folder, *few, "--executor", "processes", "--workers", 2, "--out", there, "--json"
    )
    assert many.code == 0, many.err
    assert keys_of(here) == keys_of(there)
    one, other = (json.loads(each.out) for each in (ran, many))
    assert [point["score"] for point in one["points"]] == [
        point["score"] for point in other["points"]
    ]
    stored = json.loads((here / "studies" / "curve.json").read_text())
    assert stored["command"].startswith("headcount curve")
    assert set(stored["runs"]) == keys_of(here)
    scoring = {"limit": 40, "bootstrap": 20}
    runs = {
        "kind": "prune", "model": str(folder), "task": "pocket-sentiment", "seeds": 1,
        "methods": ["random", "importance"], "ratios": [0.5, 0.75],
        "options": {
            "gated": True, "baseline": 0, "scoring": scoring, "calibration": {"samples": 16},
        },
    }  # fmt: skip
    file = tmp_path / "same.json"
    file.write_text(json.dumps({"runs": {"points": runs}}))
    plan = json.loads(cli("study", "plan", file, "--out", here, "--json").out)
    assert (plan["runs"], plan["done"]) == (4, 4)
    other_way = tmp_path / "file first"
    assert cli("study", "run", file, "--out", other_way).code == 0
    before = {path: path.stat().st_mtime_ns for path in other_way.rglob("record.json")}
    assert cli("curve", folder, *few, "--out", other_way).code == 0
    assert {path: path.stat().st_mtime_ns for path in other_way.rglob("record.json")} == before
