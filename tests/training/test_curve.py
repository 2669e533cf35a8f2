from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headcount.base.errors import UsageError
from headcount.tasks import Task
from headcount.training.curve import LearningCurve, read_curve
from headcount.training.finetune import finetune
from headcount.training.options import TrainOptions

from .conftest import interrupt, tiny

OPTIONS = TrainOptions(epochs=2, batch_size=16, learning_rate=3e-3, log_every=4, save_every=3)


@pytest.mark.parametrize(
    ("at", "save_every", "goes_on_from"),
    # 3 is between two lines of the curve, 6 is an epoch's end with its scores behind it
    [(4, 3, 3), (7, 3, 6), (11, 3, 9), (8, None, 6)],
)
def test_a_resumed_run_leaves_the_curve_of_an_undisturbed_one(
    at: int,
    save_every: int | None,
    goes_on_from: int,
    tokenizer: Any,
    task: Task,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = replace(OPTIONS, save_every=save_every)
    settings = {"tokenizer": tokenizer, "evaluation": False, "curve_scores": True}
    finetune(tiny(tokenizer), task, options=options, out=tmp_path / "a", **settings)
    stopped = interrupt(tiny(tokenizer), at)
    with pytest.raises(KeyboardInterrupt):
        finetune(stopped, task, options=options, out=tmp_path / "b", **settings)
    with (tmp_path / "b" / "curve.jsonl").open("a") as file:
        file.write('{"step": 99, "lo')  # as a kill leaves it
    again = finetune(tiny(tokenizer), task, options=options, out=tmp_path / "b", **settings)
    assert again.resumed_from == goes_on_from
    lines = (tmp_path / "b" / "curve.jsonl").read_text()
    assert lines == (tmp_path / "a" / "curve.jsonl").read_text()
    assert lines.count("accuracy") == 2
    said = f"The last line of {tmp_path / 'b' / 'curve.jsonl'} was cut short and is left out."
    assert [record.getMessage() for record in caplog.records if "cut" in record.msg] == [said]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"step": 1, "loss": 0.5}\n7\n', "line 2: 7 is no object"),
        ('{"loss": 0.5}\n', "line 1: it lacks 'step'"),
        ('{"step": 1, "loss": "x"}\n', "line 1: it has a wrong 'loss'"),
        ('{"step"\n{"step": 1}\n', "line 1"),
    ],
)
def test_a_damaged_curve_is_one_sentence(tmp_path: Path, lines: str, said: str) -> None:
    (tmp_path / "curve.jsonl").write_text(lines)
    with pytest.raises(UsageError, match=f"is no learning curve: {said}"):
        read_curve(tmp_path / "curve.jsonl")


def test_a_curve_without_a_score_is_read(tmp_path: Path) -> None:
    (tmp_path / "curve.jsonl").write_text('{"step": 1, "loss": 0.5, "f1": null}')
    assert read_curve(tmp_path / "curve.jsonl") == [{"step": 1, "loss": 0.5, "f1": None}]


@pytest.mark.parametrize("sums", ["[]", '["x"]', "[[1]]", "[1e999]", "[null]", "{}"])
def test_a_damaged_loss_of_a_checkpoint_is_one_sentence(tmp_path: Path, sums: str) -> None:
    (tmp_path / "checkpoint-3").mkdir()
    (tmp_path / "checkpoint-3" / "loss.json").write_text(f'{{"since": 2, "sums": {sums}}}')
    args: Any = SimpleNamespace(output_dir=tmp_path, device="cpu", world_size=1, process_index=0)
    state: Any = SimpleNamespace(global_step=3, is_world_process_zero=True)
    with pytest.raises(UsageError, match="is no loss of a checkpoint: it"):
        LearningCurve(tmp_path / "curve.jsonl").on_train_begin(args, state, None)


def test_a_kill_while_the_curve_is_taken_up_loses_none_of_it(
    tokenizer: Any, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"tokenizer": tokenizer, "evaluation": False, "options": OPTIONS, "out": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        finetune(interrupt(tiny(tokenizer), 10), task, **settings)
    before = (tmp_path / "curve.jsonl").read_text()
    assert before.count("loss") == 2

    real = Path.write_text

    def cut_short(self: Path, text: str, **settings: Any) -> int:
        if "curve" not in self.name:
            return real(self, text, **settings)
        self.write_bytes(text.encode()[:10])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", cut_short)
    with pytest.raises(KeyboardInterrupt):
        finetune(tiny(tokenizer), task, **settings)
    assert (tmp_path / "curve.jsonl").read_text() == before
