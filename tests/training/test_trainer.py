from __future__ import annotations

from typing import Any

import pytest
import torch

from headcount.tasks.encoding import encode
from headcount.tasks.kinds import task_kind
from headcount.training.curve import LearningCurve
from headcount.training.options import TrainOptions
from headcount.training.order import TrainingRows
from headcount.training.trainer import DivergedError, TaskTrainer, training_arguments

OPTIONS = TrainOptions(steps=2, batch_size=8, accumulate=2, learning_rate=1e-3)


def trainer_for(model: Any, task: Any, tokenizer: Any, folder: Any) -> TaskTrainer:
    kind = task_kind(task.kind)
    rows = TrainingRows(encode(task, task.load("train"), tokenizer), kind, tokenizer)
    arguments = training_arguments(OPTIONS, str(folder), device="cpu")
    arguments.per_device_train_batch_size = 4
    return TaskTrainer(
        kind=kind,
        options=OPTIONS,
        rows=rows,
        curve=LearningCurve(),
        model=model,
        args=arguments,
    )


def test_options_in_trainers_words(tmp_path) -> None:
    made = training_arguments(OPTIONS, str(tmp_path), device="cpu")
    assert (made.max_steps, made.gradient_accumulation_steps) == (2, 2)
    assert made.learning_rate == 1e-3
    assert made.use_cpu
    assert (made.bf16, made.fp16) == (False, False)
    assert made.report_to == []


def test_pieces_of_a_batch_add_up_to_its_mean_loss(model, task, tokenizer, tmp_path) -> None:
    trainer = trainer_for(model, task, tokenizer, tmp_path)
    trainer.state.max_steps = 2
    pieces, count = trainer.get_batch_samples(iter(trainer.get_train_dataloader()), 2, "cpu")  # type: ignore[arg-type]
    assert len(pieces) == 2
    assert count == 8
    shares = [
        trainer.compute_loss(model, piece, num_items_in_batch=count).item() for piece in pieces
    ]
    ids = [piece["labels"] for piece in pieces]
    with torch.no_grad():
        whole = [
            torch.nn.functional.cross_entropy(
                model(**{name: value for name, value in piece.items() if name != "labels"}).logits,
                labels,
                reduction="sum",
            )
            for piece, labels in zip(pieces, ids, strict=True)
        ]
    assert sum(shares) == pytest.approx(float(sum(whole)) / 8, rel=1e-5)


def test_no_pieces_after_the_last_step(model, task, tokenizer, tmp_path) -> None:
    trainer = trainer_for(model, task, tokenizer, tmp_path)
    trainer.state.max_steps = trainer.state.global_step = 2
    loader = iter(trainer.get_train_dataloader())
    assert trainer.get_batch_samples(loader, 2, torch.device("cpu")) == ([], None)


def test_a_loss_that_is_no_number_says_its_step(model, task, tokenizer, tmp_path) -> None:
    with torch.no_grad():
        model.classifier.bias.fill_(torch.nan)
    with pytest.raises(DivergedError, match="at step 1") as found:
        trainer_for(model, task, tokenizer, tmp_path).train()
    assert found.value.step == 1
