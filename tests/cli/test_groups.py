"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headcount.cli.groups import LOOKED, OPENED, SCORED, Looked, Opened, Scored, Sourced, open_model
from headcount.cli.groups import open_task as open_typed
from headcount.errors import UsageError
from headcount.models.opening import Opening
from headcount.tasks.looking import Looking
from headcount.tasks.source import Source
from headcount.training.scoring import Scoring


def test_what_nobody_typed_is_the_options_own_default():
    assert (OPENED.on(), SCORED.on(), LOOKED.on()) == (Opening(), Scoring(), Looking())


def test_what_was_typed_makes_the_options():
    assert Scored(limit=8, seed=3).on() == Scoring(limit=8, seed=3)
    assert Looked(inputs=Path("a"), samples=7).on() == Looking(inputs=Path("a"), samples=7)
    assert Sourced(labels=("a=b",), size=4).on() == Source(labels=("a=b",), size=4)
    with pytest.raises(UsageError, match="at least 2, not 1"):
        Scored(max_length=1).on()


def test_data_without_a_task_is_refused():
    assert open_typed(None, Sourced()) is None
    with pytest.raises(UsageError, match="--data, --label: data goes with --task"):
        open_typed(None, Sourced(data=Path("x"), label="y"))
    task = open_typed("pocket-sentiment", Sourced(size=12))
    assert task is not None
    assert len(task.load("train")) == 12


def test_a_model_is_opened_in_one_way():
    model, tokenizer, fresh = open_model("pocket", Opened(dtype="bfloat16", device="cpu"))
    weight: Any = next(model.parameters())
    assert str(weight.dtype) == "torch.bfloat16"
    assert (len(tokenizer) > 1, fresh) == (True, False)
    task = open_typed("pocket-sentiment", Sourced(size=12))
    with pytest.raises(UsageError, match="without a head for classification"):
        open_model("pocket", OPENED, task)
    assert open_model("pocket", OPENED, task, trains=True)[2] is True
