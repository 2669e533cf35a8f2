from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headcount.tasks import Task
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
    at: int, save_every: int | None, goes_on_from: int, tokenizer: Any, task: Task, tmp_path: Path
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
