"""A full disk: one sentence for every command, nothing half-written, and the work can go on."""

from __future__ import annotations

import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from headcount.base.errors import HeadcountError, UsageError
from headcount.cli.failures import explain
from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.remove import remove
from headcount.models.shipped import locate
from training.conftest import tiny

TASK = ("--task", "pocket-sentiment", "--limit", 16)
SEED = ("--seeds", 1, "--bootstrap", 5)
OVER = ("--over", "mu=0.1,0.2")
CUTS = ("--methods", "random", *SEED)
TRAIN = ("--task", "pocket-sentiment", "--steps", 1, "--batch-size", 4, "--max-length", 16)


@pytest.fixture(scope="module")
def cut(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = load(folder)
    made = tmp_path_factory.mktemp("cut")
    remove(model, Mask.parse("222", layout(model))).save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one layer: a graph takes its time for each."""
    made = tmp_path_factory.mktemp("short")
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    tiny(tokenizer, num_hidden_layers=1).save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


RESUMED = ("train", "curve", "compare", "sweep")
"""They keep what they can go on from."""


@contextmanager
def full_after(size: int) -> Generator[None]:
    """No file may grow beyond so many bytes; Python is told so as it is of a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    plain, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it would be cut short
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = plain


@pytest.mark.parametrize(
    ("words", "size"),
    [
        (("remove", "MODEL", "--keep", "222", "--out", "new"), 4000),
        (("remove", "MODEL", "--keep", "222", "--out", "new"), 500),
        (("prune", "MODEL", "--method", "random", "--ratio", 0.5, "--out", "new"), 4000),
        (("export", "MODEL", "--to", "zeroed", "--out", "new"), 4000),
        (("export", "CUT", "--to", "standalone", "--out", "new"), 4000),
        (("export", "SHORT", "--to", "onnx", "--out", "new"), 4000),
        (("export", "SHORT", "--to", "torch-export", "--out", "new"), 4000),
        (("export", "SHORT", "--to", "torch-export", "--out", "new"), 40_000),
        (("redundancy", "MODEL", "--random", 4, "--max-length", 8, "--out", "new.npz"), 1000),
        (("redundancy", "MODEL", "--random", 4, "--max-length", 8, "--figure", "new.svg"), 2000),
        (("importance", "MODEL", *TASK[:2], "--calibration-samples", 16, "--out", "new.json"), 500),
        (("evaluate", "MODEL", *TASK, "--bootstrap", 9, "--predictions", "new.parquet"), 400),
        (("attention", "MODEL", "--text", "the king sees", "--out", "new"), 2000),
        (("train", "MODEL", *TRAIN, "--out", "new"), 4000),
        (("curve", "MODEL", *TASK, *CUTS, "--ratios", 0.5, "--out", "new"), 400),
        (("curve", "MODEL", *TASK, *CUTS, "--ratios", 0.5, "--out", "new"), 5000),
        (("compare", "MODEL", *TASK, *CUTS, *TRAIN[2:], "--out", "new"), 5000),
        (
            ("sweep", "MODEL", *TASK, "--over", "mu=0.1,0.2", *SEED, *TRAIN[2:], "--out", "new"),
            5000,
        ),
        (("transfer", "MODEL", "MODEL", "--random", 4, "--out", "new"), 1000),
    ],
    ids=lambda value: f"{value[0]} {value[3]}" if isinstance(value, tuple) else str(value),
)
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_done(
    cli: Any,
    folder: Path,
    cut: Path,
    short: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: Any,
    size: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    line = [{"MODEL": folder, "CUT": cut, "SHORT": short}.get(word, word) for word in words]
    with full_after(size):
        ran = cli(*line)
    assert ran.code == 1, ran.err
    assert ran.out == ""
    # a slow machine tells every half a minute that it is still at it; the model is untrained
    aside = (" so far: ", " is not better than guessing ")
    told = [
        line for line in ran.err.strip().splitlines() if not any(part in line for part in aside)
    ]
    assert len(told) == 1, ran.err
    assert told[0].startswith("headcount: Cannot write")
    assert told[0].endswith("Free some space or write elsewhere, and run the same command again.")
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in left if ".partial" in path.name or ".safetensors" in path.name]
    if words[0] not in RESUMED:
        assert left == []
    again = cli(*line)
    assert again.code == 0, again.err


def test_other_failures_are_not_taken_for_a_full_disk() -> None:
    assert explain(UsageError("There is no task 'No space left'.")) == (
        "There is no task 'No space left'.",
        2,
    )
    assert explain(HeadcountError("It failed."))[0] == "It failed."
