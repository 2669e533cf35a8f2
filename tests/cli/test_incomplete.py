"""Checkpoints that lack weights: every command refuses them by name, but one that trains."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

TASK = ("--task", "pocket-sentiment", "--limit", 16)
TRAIN = ("--task", "pocket-sentiment", "--steps", 1, "--batch-size", 4, "--max-length", 16)


@pytest.fixture(scope="module")
def headless(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny classifier whose file has lost its classifier."""
    made = tmp_path_factory.mktemp("headless") / "model"
    shutil.copytree(folder, made)
    weights = load_file(made / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "classifier" not in name}
    save_file(kept, made / "model.safetensors", metadata={"format": "pt"})
    return made


@pytest.mark.parametrize(
    "line",
    [
        ("evaluate", "M", *TASK),
        ("prune", "M", "--ratio", 0.5, "--method", "random", "--out", "OUT"),
        ("prune", "M", "--ratio", 0.5, *TASK, "--out", "OUT"),
        ("importance", "M", "--task", "pocket-sentiment", "--calibration-samples", 4),
        ("redundancy", "M", "--random", 2),
        ("roles", "M", "--random", 2),
        ("attention", "M", "M", "--text", "the cat"),
        ("transfer", "M", "M", "--task", "pocket-sentiment", "--calibration-samples", 4),
        ("export", "M", "--to", "zeroed", "--out", "OUT"),
        ("bench", "M", "--batch", 1, "--length", 4),
        ("search", "M", "--max-drop", "1%", *TASK, "--out", "OUT"),
        ("curve", "M", *TASK, "--ratios", 0.5, "--seeds", 1, "--out", "OUT"),
        ("remove", "M", "--keep", "222", "--out", "OUT"),
    ],
    ids=lambda line: line[0],
)
def test_every_command_names_what_is_missing(
    line: tuple[Any, ...], headless: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    places = {"M": headless, "OUT": tmp_path / "out"}
    ran = cli(*[places.get(token, token) for token in line])
    assert (ran.code, ran.out) == (4, ""), ran
    assert "lack classifier.bias, classifier.weight" in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "line", [("train", *TRAIN), ("prune", *TRAIN, "--ratio", 0.5, "--finetune", "--limit", 8)]
)
def test_where_training_is_asked_the_head_is_new_and_that_is_said(
    line: tuple[Any, ...], headless: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    # a folder of its own: what is new is said once in a process
    model = shutil.copytree(headless, tmp_path / "model")
    ran = cli(line[0], model, *line[1:], "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "has new weights, to be trained" in ran.err
    assert "classifier.bias, classifier.weight" in ran.err


def test_a_config_with_fewer_layers_than_weights_is_refused(
    folder: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    model = shutil.copytree(folder, tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    for line in (("evaluate", *TASK), ("prune", "--ratio", 0.5, "--out", tmp_path / "out")):
        ran = cli(line[0], model, *line[1:])
        assert ran.code == 4
        assert "have bert.encoder.layer.2.attention.output.LayerNorm.bias" in ran.err
