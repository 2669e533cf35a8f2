from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from headcount.exports.formats import FORMATS
from headcount.models.find import layout
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove
from headcount.models.shipped import locate
from models.zoo import build, mixed
from training.conftest import tiny


@pytest.fixture
def small(tmp_path):
    model = build("bert")
    made = remove(model, mixed(layout(model)))
    made.save_pretrained(tmp_path / "small")
    return made


def test_the_formats_are_listed_and_another_is_refused(cli, small, tmp_path):
    ran = cli("ls", "formats", "--json")
    listed = [row["name"] for row in json.loads(ran.out)["formats"]]
    assert listed == [entry.name for entry in FORMATS]
    shown = " ".join(cli("export", "--help").out.split())
    assert all(name in shown for name in listed)
    ran = cli("export", tmp_path / "small", "--to", "onyx", "--out", tmp_path / "out")
    assert (ran.code, ran.out) == (2, "")
    assert "There is no export format 'onyx'. Did you mean 'onnx'?" in ran.err


def test_export_writes_and_tells(cli, small, tmp_path):
    ran = cli("export", tmp_path / "small", "--to", "zeroed", "--out", tmp_path / "out", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert (found["to"], found["folder"]) == ("zeroed", str(tmp_path / "out"))
    assert found["files"] == ["README.md", "config.json", "model.safetensors"]
    assert found["difference"] <= 1e-5
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    inputs = probe_inputs(small, seed=9)
    assert relative_difference(run(small, inputs), run(again, inputs)) <= 1e-5


def test_the_table(cli, small, tmp_path):
    ran = cli("export", tmp_path / "small", "--to", "standalone", "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "modeling_headcount.py" in ran.out
    assert "0.0e+00 of the largest output" in ran.out


def test_the_rows_of_a_task_are_verified(cli, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer).save_pretrained(tmp_path / "whole")
    asked = ["--to", "zeroed", "--task", "pocket-paraphrase", "--tokenizer", "pocket-bert"]
    ran = cli("export", tmp_path / "whole", *asked, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    card = (tmp_path / "out" / "README.md").read_text()
    assert "text pairs, tokenised and padded and 64 rows of the task" in card
    assert "tokenizer.json" in ran.out
    ran = cli("export", tmp_path / "whole", "--to", "onnx", "--out", tmp_path / "b", "--data", ".")
    assert (ran.code, ran.out) == (2, "")
    assert "need --task" in ran.err


def test_another_dtype(cli, small, tmp_path):
    options = ["--to", "zeroed", "--dtype", "bfloat16"]
    assert cli("export", tmp_path / "small", *options, "--out", tmp_path / "out").code == 0
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert again.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("model", "to", "code", "words"),
    [
        ("small", "zeroes", 2, "zeroed"),
        ("whole", "standalone", 2, "has all its heads"),
        ("nowhere", "zeroed", 4, "There is no model"),
        ("pickled", "zeroed", 2, "--allow-pickle"),
    ],
)
def test_what_is_refused(cli, small, tmp_path, model, to, code, words):
    build("bert").save_pretrained(tmp_path / "whole")
    (tmp_path / "pickled").mkdir()
    small.config.save_pretrained(tmp_path / "pickled")
    torch.save(small.state_dict(), tmp_path / "pickled" / "pytorch_model.bin")
    ran = cli("export", tmp_path / model, "--to", to, "--out", tmp_path / "out")
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert not (tmp_path / "out").exists()


def test_pickled_weights_with_consent(cli, small, tmp_path):
    (tmp_path / "pickled").mkdir()
    small.config.architectures = [type(small).__name__]
    small.config.save_pretrained(tmp_path / "pickled")
    torch.save(small.state_dict(), tmp_path / "pickled" / "pytorch_model.bin")
    asked = ["--to", "zeroed", "--out", tmp_path / "out", "--allow-pickle"]
    ran = cli("export", tmp_path / "pickled", *asked)
    assert ran.code == 0, ran.err
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_a_folder_in_use_is_refused_before_anything_is_loaded(cli, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "note.txt").write_text("mine")
    ran = cli("export", tmp_path / "nowhere", "--to", "zeroed", "--out", tmp_path / "out")
    assert ran.code == 2
    assert "new or empty folder" in ran.err
