from __future__ import annotations

import pytest

from headcount.base.errors import MissingExtraError, UsageError
from headcount.training.logging import TRACKERS, Logging


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr("headcount.training.logging.find_spec", lambda name: name)


def test_nothing_is_logged_by_default():
    assert not Logging()
    assert Logging().log_to == ()


def test_names_once_each(installed):
    assert Logging(log_to="wandb").log_to == ("wandb",)
    assert Logging(log_to=["mlflow", "wandb", "mlflow"]).log_to == ("mlflow", "wandb")
    assert Logging(log_to=TRACKERS)


def test_a_run_is_named_after_what_it_is_part_of():
    assert Logging().named("random", 0.5, None, "seed", 0).run == "random 0.5 seed 0"
    assert Logging(run="mine").named("seed", 1).run == "mine seed 1"


def test_refusals(installed, monkeypatch):
    with pytest.raises(UsageError, match="Did you mean 'tensorboard'"):
        Logging(log_to="tensorbord")
    with pytest.raises(UsageError, match="project"):
        Logging(log_project=" ")
    monkeypatch.setattr("headcount.training.logging.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install trackio wandb$"):
        Logging(log_to=("trackio", "wandb"))
