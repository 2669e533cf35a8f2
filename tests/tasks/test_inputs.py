"""Rows without labels: of a file, of a task, or drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from headcount.base.errors import UsageError
from headcount.models.shipped import locate
from headcount.tasks import open_task
from headcount.tasks.calibration import InputOptions
from headcount.tasks.inputs import read_inputs
from training.conftest import tiny


@pytest.fixture(scope="module")
def pair() -> tuple[Any, Any]:
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    return tiny(tokenizer), tokenizer


def test_lines_of_a_file(pair, tmp_path: Path):
    file = tmp_path / "lines.txt"
    file.write_text("the king\n\na queen sees a cat\n")
    rows, name = read_inputs(*pair, InputOptions(rows=file))
    assert (len(rows), name) == (2, "lines.txt")
    file.write_text("\n \n")
    with pytest.raises(UsageError, match="has no lines with text"):
        read_inputs(*pair, InputOptions(rows=file))


def test_random_tokens_follow_the_seed(pair):
    one, name = read_inputs(*pair, InputOptions(random=6, max_length=9))
    assert (len(one), name) == (6, "random tokens")
    assert 5 <= one.lengths.min() <= one.lengths.max() <= 9
    again = read_inputs(*pair, InputOptions(random=6, max_length=9))[0]
    other = read_inputs(*pair, InputOptions(random=6, max_length=9, seed=1))[0]
    assert one.columns == again.columns != other.columns
    # asked for by name, they are taken even where there is a task
    assert read_inputs(*pair, InputOptions(random=6), open_task("pocket-sentiment"))[1] == name


def test_what_decides_is_not_what_is_scored(pair, tmp_path: Path):
    file = tmp_path / "mine.csv"
    file.write_text("text,label\n" + "".join(f"the king {word},a\n" for word in "abcdef"))
    task = open_task("classification", data=file, columns="text", label="label")
    scored, name = read_inputs(*pair, InputOptions(), task)
    decide = read_inputs(*pair, InputOptions(), task, decides=True)[0]
    assert name == "classification"
    assert len(scored) + len(decide) == 6
    assert len(read_inputs(*pair, InputOptions(split="all"), task, decides=True)[0]) == 6
