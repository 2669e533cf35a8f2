from __future__ import annotations

import copy
import os
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from transformers import TrainerCallback
from transformers.integrations import integration_utils

import headcount as hc
from headcount.base.errors import HeadcountError
from headcount.learned.methods import StraightThrough
from headcount.learned.run import learn
from headcount.training.finetune import finetune
from headcount.training.logging import Logging
from headcount.training.options import TrainOptions
from headcount.training.tracker import Tracker, log_run
from runs.flat import compare, curve, prune

SHORT = TrainOptions(steps=4, batch_size=16, learning_rate=1e-3, log_every=2)


@dataclass
class Run:
    """What one run of the made-up tracker was told."""

    name: str
    project: str
    config: dict[str, Any]
    rows: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    ended: bool = False

    def column(self, name: str) -> dict[int, Any]:
        return {step: row[name] for step, row in self.rows if name in row}


class Board(TrainerCallback):
    """An integration as transformers has them, which keeps what it is told."""

    runs: ClassVar[list[Run]] = []

    def on_train_begin(self, args, state, control, **_):
        self.runs.append(Run(args.run_name, os.environ["WANDB_PROJECT"], args.to_dict()))

    def on_log(self, args, state, control, logs=None, **_):
        assert not self.runs[-1].ended
        self.runs[-1].rows.append((state.global_step, logs))

    def on_train_end(self, args, state, control, **_):
        self.runs[-1].ended = True


@pytest.fixture
def board(monkeypatch) -> list[Run]:
    monkeypatch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "tensorboard", Board)
    monkeypatch.setattr("headcount.training.logging.find_spec", lambda name: name)
    monkeypatch.setattr(Board, "runs", [])
    return Board.runs


TO = {"log_to": "tensorboard", "log_project": "pets"}


def test_losses_and_scores_of_a_training(model, task, tokenizer, board):
    done = finetune(
        model, task, options=SHORT, tokenizer=tokenizer, device="cpu", curve_scores=True,
        logging=Logging(**TO),
    )  # fmt: skip
    (run,) = board
    assert (run.name, run.project, run.ended) == (task.name, "pets", True)
    assert run.config["learning_rate"] == 1e-3
    losses = {point["step"]: point["loss"] for point in done.curve if "loss" in point}
    assert run.column("loss") == pytest.approx(losses, rel=1e-3)  # Trainer's, which it rounds
    assert list(losses) == [2, 4]
    assert done.evaluation is not None
    assert run.column(f"eval_{done.evaluation.scores[0].metric}")[4] == done.evaluation.score
    assert "WANDB_PROJECT" not in os.environ


def test_the_same_training_is_found_with_another_tracker_or_none(
    model, task, tokenizer, board, tmp_path
):
    how = {"options": SHORT, "tokenizer": tokenizer, "device": "cpu", "out": tmp_path / "run"}
    first = finetune(copy.deepcopy(model), task, logging=Logging(**TO), **how)
    assert [run.name for run in board] == ["run"]
    assert finetune(copy.deepcopy(model), task, **how).seconds == pytest.approx(
        first.seconds, abs=1e-3
    )
    finetune(copy.deepcopy(model), task, logging=Logging(**TO), **how)
    assert len(board) == 1  # there was nothing to do


def test_a_run_that_fails_is_closed(model, task, tokenizer, board):
    def stop(step, steps, point):
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        finetune(
            model, task, options=SHORT, tokenizer=tokenizer, device="cpu", report=stop,
            logging=Logging(**TO),
        )  # fmt: skip
    assert [run.ended for run in board] == [True]


def test_gates_are_logged_beside_losses(model, task, tokenizer, board):
    found = learn(
        model, task, StraightThrough(gate_lr=0.5), 0.5, train=SHORT, tokenizer=tokenizer,
        device="cpu", logging=Logging(**TO),
    )  # fmt: skip
    (run,) = board
    open_gates = run.column("gates_open")
    assert open_gates[4] == len(found.mask) == 6
    assert run.column("gates_sparsity")[4] == 0.5
    assert set(open_gates) == {2, 4}
    assert found.gap is None or run.column("gates_gap")[4] == found.gap["gap"]


def test_a_cut_with_its_training_and_that_of_random_ones(model, task, tokenizer, board, tmp_path):
    found = prune(
        model, "random", 0.5, task=task, tokenizer=tokenizer, finetune=SHORT, baseline=1,
        bootstrap=0, device="cpu", out=tmp_path / "small", logging=Logging(**TO),
    )  # fmt: skip
    assert [run.name for run in board] == [
        "small random 0.5 seed 0", "small random 0.5 random seed 1",
        "small random 0.5 seed 0 scored",
    ]  # fmt: skip
    ((_, row),) = board[-1].rows
    scores = found.record["scores"]
    assert row["eval_score"] == scores["after"]["score"]
    assert row["eval_difference"] == pytest.approx(row["eval_score"] - row["eval_full"])
    assert row["eval_kept"] == 6
    assert board[-1].config["method"] == "random"


def test_a_study_logs_every_run_that_it_finishes_once(model, task, tokenizer, board, tmp_path):
    how = {
        "tokenizer": tokenizer,
        "bootstrap": 0,
        "samples": 16,
        "device": "cpu",
        "out": tmp_path / "c",
    }
    asked = (model, task, ["random"], [0.5])
    plain = curve(*asked, seeds=1, **how)
    assert board == []
    found = curve(*asked, seeds=3, logging=Logging(**TO), **how)
    assert found.points[:1] == plain.points  # it is no part of what is asked
    assert [run.name for run in board] == [f"c random 0.5 seed {seed} scored" for seed in (1, 2)]
    for run, point in zip(board, found.points[1:], strict=True):
        ((_, row),) = run.rows
        assert (row["eval_score"], row["eval_kept"]) == (point.score, point.kept)
        asked_for = {name: run.config[name] for name in ("method", "ratio", "seed")}
        assert asked_for == {"method": "random", "ratio": 0.5, "seed": point.seed}


def test_a_comparison_logs_trainings_and_results(model, task, tokenizer, board):
    compare(
        model, task, ["all-heads", "random"], tokenizer=tokenizer, train=SHORT, bootstrap=0,
        seeds=1,
        device="cpu", logging=Logging(**TO),
    )  # fmt: skip
    first = f"{task.name} all-heads seed 0"
    assert [run.name for run in board][:2] == [first, f"{first} scored"]
    assert "loss" in board[0].rows[0][1]
    assert len(board) == 4


def test_a_tracker_that_is_damaged_is_named(board, monkeypatch):
    def damaged():
        raise ImportError("cannot import name 'service' from 'google.protobuf'")

    monkeypatch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "mlflow", damaged)
    with pytest.raises(HeadcountError, match=r"Cannot log to mlflow.*protobuf'\. Mend"):
        log_run(Logging(log_to="mlflow"), {}, {})


def test_what_is_undefined_is_left_out(board):
    log_run(Logging(**TO), {"method": "a"}, {"score": float("nan"), "kept": 3})
    log_run(Logging(), {"method": "a"}, {"kept": 3})
    (run,) = board
    assert run.rows == [(0, {"eval_kept": 3})]
    assert run.config == {"run_name": "run", "method": "a"}


def test_a_run_that_the_caller_opened_stays_open(board):
    class Wandb:
        def __init__(self):
            self.run = None

    class Own(Board):
        shared = Wandb()

        def __init__(self):
            self._wandb = self.shared

        def on_train_begin(self, args, state, control, **more):
            super().on_train_begin(args, state, control, **more)
            self._wandb.run = self._wandb.run or Opened()

    class Opened:
        finished = 0

        def finish(self):
            Opened.finished += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "tensorboard", Own)
        Own.shared.run = Opened()
        log_run(Logging(**TO), {}, {"kept": 1})
        assert Opened.finished == 0
        Own.shared.run = None
        log_run(Logging(**TO), {}, {"kept": 1})
    assert Opened.finished == 1


def test_folders_of_tensorboard(monkeypatch):
    from headcount.training.tracker import _board

    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR", raising=False)
    assert _board("head count", "c random 0.5 seed 1").as_posix() == (
        "runs/head-count/c-random-0.5-seed-1"
    )
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", "/logs")
    assert _board("../a", "..").as_posix() == "/logs/a/run"
    assert hc.Logging is Logging
    assert Tracker(Logging(run="mine"), "usual").name == "mine"
