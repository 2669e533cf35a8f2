from __future__ import annotations

import json

import pytest
from transformers import AutoTokenizer

from headcount.models.load import load
from headcount.sensitivity.gradients import ImportanceResult, importance
from headcount.tasks import open_task
from headcount.tasks.rows import labelled_rows

LINE = ("--task", "pocket-sentiment", "--calibration-samples", 40)


def test_the_command_does_as_the_function(cli, folder, tmp_path):
    ran = cli("importance", folder, *LINE, "--normalize", "l1", "--json", "--out", tmp_path / "i")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    model, task = load(folder), open_task("pocket-sentiment")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = labelled_rows(model, task, tokenizer, limit=40)
    expected = importance(model, rows, normalize="l1")
    found = ImportanceResult.from_json(json.loads(ran.out))
    assert found.values == pytest.approx(expected.values, rel=1e-5)
    assert found.n == 40
    assert json.loads((tmp_path / "i").read_text()) == json.loads(ran.out)


def test_the_table(cli, folder):
    ran = cli("importance", folder, *LINE)
    assert ran.code == 0, ran.err
    assert "40 examples" in ran.out
    assert ran.out.count("encoder") == 3
    assert "error ≤" in ran.out


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--normalize", "l3"), 2, "none, l1 or l2"),
        (("--keep", "999"), 2, "keeps 9 heads in encoder layer 0, which has 4"),
        (("--split", "tran"), 2, "Did you mean 'train'"),
    ],
)
def test_wrong_usage(cli, folder, more, code, said):
    ran = cli("importance", folder, *LINE, *more)
    assert ran.code == code
    assert said in ran.err
    assert ran.out == ""


def test_a_task_the_model_was_not_trained_for(cli, folder):
    ran = cli("importance", folder, "--task", "pocket-corpus")
    assert ran.code == 2
    assert "without a head for masked-lm: train it first" in ran.err


def test_no_rows(cli, folder):
    ran = cli("importance", folder, "--task", "pocket-sentiment", "--calibration-samples", 0)
    assert ran.code == 2
    assert "at least 1" in ran.err
