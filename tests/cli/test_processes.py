"""Commands that `accelerate launch` starts in two processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

from headcount.base.header import header
from headcount.learned.trace import load_trace
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.shipped import locate
from launching import launched
from training.conftest import pets, tiny


@pytest.fixture
def task(tmp_path: Path) -> list[str]:
    """A tiny model and a task of two files; the beginning of a command line."""
    tokenizer: Any = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    model = tiny(tokenizer)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    for split in ("train", "dev"):
        found = pets(rows=40).load(split)
        assert found.labels is not None
        rows = [
            f"{text}\t{label}\n" for text, label in zip(found.texts[0], found.labels, strict=True)
        ]
        (tmp_path / f"{split}.tsv").write_text("text\tlabel\n" + "".join(rows))
    names = ["--columns", "text", "--label", "label"]
    return [str(tmp_path / "model"), "--task", "classification", "--data", str(tmp_path), *names]


def test_two_processes_end_in_one_folder_and_the_same_gates(task: list[str], tmp_path: Path):
    line = ["--method", "straight-through", "--ratio", "0.5", "--steps", "6", "--batch-size", "8"]
    line += ["--gate-lr", "2", "--baseline", "1", "--bootstrap", "0", "--device", "cpu", "--json"]
    line += ["--out", str(tmp_path / "out" / "small")]
    child = Path(__file__).with_name("launched.py")
    said = json.loads(
        launched(child, tmp_path, "prune", *task, *line)
    )  # one object: only the first process prints
    small = tmp_path / "out" / "small"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["small"]
    masks = [json.loads((tmp_path / f"mask-{rank}.json").read_text()) for rank in (0, 1)]
    written = json.loads((small / "mask.json").read_text())
    assert masks[0] == masks[1] == said["mask"]
    assert written == header("mask") | masks[0]
    assert layout(load(small))["encoder"].total == said["heads"]["after"] == 6
    first, second = (load_trace(tmp_path / f"gates-{rank}.npz") for rank in (0, 1))
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.states, second.states)
    assert not np.array_equal(first.values[0], first.values[-1])
    assert np.array_equal(load_trace(small).values, first.values)


@pytest.mark.parametrize("command", ["compare", "curve"])
def test_studies_work_in_one_process(command: str, cli, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    ran = cli(command, "pocket", "--task", "pocket-sentiment", "--out", tmp_path / "c")
    assert (ran.code, ran.out) == (2, "")
    assert f"The command {command} keeps its runs in one folder" in ran.err
    assert "one process, not 2: start it without accelerate launch" in ran.err
    assert not (tmp_path / "c").exists()


def test_only_the_first_process_minds_a_folder_that_is_there(cli, monkeypatch, tmp_path: Path):
    line = ("prune", "pocket", "--method", "random", "--ratio", 0.5, "--out", tmp_path)
    (tmp_path / "model.safetensors").touch()  # the first process was quicker
    assert cli(*line).code == 2
    monkeypatch.setenv("RANK", "1")
    ran = cli(*line)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    assert cli(*line, "--dry-run").out == ""
