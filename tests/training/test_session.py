from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from headcount.base.errors import HeadcountError, UsageError
from headcount.learned.methods import Subset
from headcount.learned.run import learn
from headcount.tasks import Task
from headcount.training.finetune import finetune
from headcount.training.options import TrainOptions
from headcount.training.session import Session

from .conftest import tiny

OPTIONS = TrainOptions(epochs=3, batch_size=32, learning_rate=3e-3, save_every=2)


def counted(task: Task) -> tuple[Task, list[str]]:
    """The task, and the splits that were loaded."""
    loads: list[str] = []
    return replace(task, loader=lambda split: loads.append(split) or task.loader(split)), loads


def test_rows_are_loaded_once_however_often_they_are_scored(tokenizer: Any, task: Task) -> None:
    seen, loads = counted(task)
    trained = finetune(
        tiny(tokenizer), seen, tokenizer=tokenizer, options=OPTIONS, curve_scores=True
    )
    assert [point["step"] for point in trained.curve if "accuracy" in point] == [3, 6, 9]
    assert trained.evaluation is not None
    assert loads == ["train", "dev"]
    seen, loads = counted(task)
    gates = Subset(score_points=2, score_rows=20)
    learn(tiny(tokenizer), seen, gates, 0.5, train=OPTIONS, tokenizer=tokenizer, device="cpu")
    # once more to tell a run with other rows apart, and two samples: of the gap and of the points
    assert loads == ["train", "dev", "dev", "dev"]


def test_both_ways_of_training_say_where_a_good_checkpoint_is(
    tokenizer: Any, task: Task, tmp_path: Path
) -> None:
    def spoiled() -> Any:
        model = tiny(tokenizer)
        count = iter(range(100))

        def spoil(module: Any, args: Any, output: Any) -> Any:
            return output * (float("nan") if module.training and next(count) == 3 else 1.0)

        model.classifier.register_forward_hook(spoil)
        return model

    how: dict[str, Any] = {"tokenizer": tokenizer, "device": "cpu"}
    where = r"at step 4\. The last good checkpoint is '.*checkpoint-2'\. Try a lower learning rate"
    with pytest.raises(HeadcountError, match=where):
        finetune(spoiled(), task, options=OPTIONS, out=tmp_path / "a", **how)
    with pytest.raises(HeadcountError, match=where + " of the weights or of the gates"):
        learn(spoiled(), task, Subset(), 0.5, train=OPTIONS, out=tmp_path / "b", gap=0, **how)


def test_a_session_goes_on_and_finishes_once(tokenizer: Any, task: Task, tmp_path: Path) -> None:
    options = replace(OPTIONS, steps=2)

    def run() -> Session:
        session = Session(tiny(tokenizer), task, tokenizer, options, limit=64)
        with session.opened(tmp_path, session.settings(scored=False), device="cpu"):
            if session.is_done:
                return session
            session.set_up()
            session.train(advice="")
            session.finish(lambda folder: (folder / "result.json").write_text("{}") and None)
        return session

    first = run()
    assert (len(first.encoded), first.trainer.state.global_step) == (64, 2)
    assert not list(tmp_path.glob("checkpoint-*"))
    again = run()
    assert again.is_done
    assert not hasattr(again, "trainer")
    assert torch.equal(again.model.classifier.weight, tiny(tokenizer).classifier.weight)
    options = replace(options, batch_size=33, accumulate=2)
    with pytest.raises(UsageError, match="33 rows cannot be cut evenly into 2 pieces"):
        run()
