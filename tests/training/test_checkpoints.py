from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.tasks import Task
from headcount.training import checkpoints
from headcount.training.finetune import finetune
from headcount.training.options import TrainOptions

from .conftest import interrupt, tiny

OPTIONS = TrainOptions(epochs=1, batch_size=16, learning_rate=3e-3, save_minutes=0)


def stop(model: Any, task: Task, **settings: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        finetune(interrupt(model, 4), task, evaluation=False, **settings)


def test_a_first_epoch_that_takes_long_is_saved_by_time(
    tokenizer: Any, task: Task, tmp_path: Path
) -> None:
    stop(tiny(tokenizer), task, tokenizer=tokenizer, options=OPTIONS, out=tmp_path / "a")
    assert checkpoints.last_checkpoint(tmp_path / "a") is None
    often = replace(OPTIONS, save_minutes=1e-9)
    stop(tiny(tokenizer), task, tokenizer=tokenizer, options=often, out=tmp_path / "b")
    assert checkpoints.step_of(checkpoints.last_checkpoint(tmp_path / "b")) == 4


def test_how_often_a_run_saves_may_change(tokenizer: Any, task: Task, tmp_path: Path) -> None:
    often = replace(OPTIONS, save_every=2, save_minutes=7)
    stop(tiny(tokenizer), task, tokenizer=tokenizer, options=often, out=tmp_path)
    settings = {"tokenizer": tokenizer, "options": OPTIONS, "out": tmp_path, "evaluation": False}
    assert finetune(tiny(tokenizer), task, **settings).resumed_from == 4


def test_a_checkpoint_that_is_half_deleted_is_not_whole(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-3"
    folder.mkdir()
    (folder / checkpoints.MARK).write_text("{}")
    (folder / "rng_state.pth").write_text("")
    assert checkpoints.last_checkpoint(tmp_path) == folder
    seen = []

    def killed(path: Path, **_: Any) -> None:
        seen.append(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints.shutil, "rmtree", killed)
        checkpoints.drop_checkpoints(tmp_path)
    assert seen == [folder]
    assert checkpoints.last_checkpoint(tmp_path) is None
    assert not folder.exists()


def test_weights_come_back_with_buffers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    model(torch.randn(8, 3))
    checkpoints.save_weights(model, tmp_path)
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    checkpoints.load_weights(other, tmp_path)
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def test_weights_that_a_file_lacks_are_named(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    checkpoints.save_weights(model[:1], tmp_path)
    with pytest.raises(UsageError, match=r"lacks weights of the model: '1\.weight'"):
        checkpoints.load_weights(model, tmp_path)
