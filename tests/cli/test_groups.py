"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cyclopts import Argument

from cli.test_config import LINES
from headcount.base.errors import UsageError
from headcount.cli.groups import (
    CALIBRATION_FLAGS,
    MODEL_FLAGS,
    SCORING_FLAGS,
    CalibrationFlags,
    ScoringFlags,
    SourceFlags,
    open_model,
)
from headcount.cli.groups import open_task as open_typed
from headcount.cli.main import CommandLine, build
from headcount.cli.values import kind_of
from headcount.models.model_options import ModelOptions
from headcount.tasks.calibration import Calibration
from headcount.tasks.source import Source
from headcount.training.scoring import Scoring


def test_what_nobody_typed_is_the_options_own_default():
    assert (MODEL_FLAGS.on(), SCORING_FLAGS.on(), CALIBRATION_FLAGS.on()) == (
        ModelOptions(),
        Scoring(),
        Calibration(),
    )


def test_what_was_typed_makes_the_options():
    assert ScoringFlags(limit=8, seed=3).on() == Scoring(limit=8, seed=3)
    assert CalibrationFlags(rows=Path("a"), samples=7).on() == Calibration(
        rows=Path("a"), samples=7
    )
    assert SourceFlags(labels=("a=b",), size=4).on() == Source(labels=("a=b",), size=4)
    with pytest.raises(UsageError, match="at least 2, not 1"):
        ScoringFlags(max_length=1).on()


def test_data_without_a_task_is_refused():
    assert open_typed(None, SourceFlags()) is None
    with pytest.raises(UsageError, match="need --task, which is missing: --data, --label"):
        open_typed(None, SourceFlags(data=Path("x"), label="y"))
    task = open_typed("pocket-sentiment", SourceFlags(size=12))
    assert task is not None
    assert len(task.load("train")) == 12


def test_a_model_is_opened_in_one_way():
    model, tokenizer, fresh = open_model("pocket", ModelOptions(dtype="bfloat16", device="cpu"))
    weight: Any = next(model.parameters())
    assert str(weight.dtype) == "torch.bfloat16"
    assert (len(tokenizer) > 1, fresh) == (True, False)
    task = open_typed("pocket-sentiment", SourceFlags(size=12))
    with pytest.raises(UsageError, match="without a head for classification"):
        open_model("pocket", ModelOptions(), task)
    assert open_model("pocket", ModelOptions(), task, trains=True)[2] is True


def options_of(words: list[str]) -> dict[str, Argument]:
    app = build(CommandLine(tokens=words)).parse_commands(words)[1][-1]
    found = [each for each in app.assemble_argument_collection() if each.parse]
    return {name: each for each in found if not each.children for name in each.names}


@pytest.mark.parametrize("words", LINES)
def test_an_option_means_one_thing_everywhere(words: list[str]) -> None:
    found = options_of(words)
    assert ("--text" in found) == (words == ["attention"]), "a sentence, and only there"
    assert "--column" not in found
    if "--calibration" in found:
        assert kind_of(found["--calibration"].hint) == (Path, False)
    if "--columns" in found:
        assert kind_of(found["--columns"].hint) == (str, True)
    for name in ("--limit", "--calibration-samples", "--seed"):
        if name in found:
            assert kind_of(found[name].hint) == (int, False)


def test_numbers_of_rows_that_are_scored_and_looked_at() -> None:
    """No command that only looks has a --limit, none that only scores has --calibration-samples."""
    for command in ("redundancy", "importance"):
        assert "--limit" not in options_of([command])
        assert "--calibration-samples" in options_of([command])
    assert "--limit" in options_of(["evaluate"])
    assert "--calibration-samples" not in options_of(["evaluate"])
    assert {"--limit", "--calibration-samples"} <= set(options_of(["transfer"]))


def test_wrong_options_are_told_before_anything_is_opened(cli: Any) -> None:
    for line, said in (
        (["evaluate", "pocket", "--task", "cola", "--bootstrap", "-1"], "not negative: -1"),
        (
            ["importance", "pocket", "--task", "cola", "--calibration-samples", "0"],
            "at least 1, not 0",
        ),
        (["redundancy", "pocket", "--tolerance", "0"], "above 0, not 0"),
        (["transfer", "pocket", "pocket", "--share", "2"], "at most 1, not 2"),
        (["attention", "pocket", "--text", "a", "--max-length", "1"], "at least 2, not 1"),
    ):
        ran = cli(*line)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err
