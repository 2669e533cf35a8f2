from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.base.files import locked
from headcount.tasks import Examples, Task
from headcount.training import runs
from headcount.training.finetune import finetune
from headcount.training.options import TrainOptions

from .conftest import interrupt, tiny

OPTIONS = TrainOptions(steps=4, batch_size=16, learning_rate=3e-3, save_every=2)


@pytest.fixture
def stopped(tokenizer: Any, task: Task, tmp_path: Path) -> Callable[..., Any]:
    """A run that was interrupted after step 2; call it to go on with something changed."""
    settings = {"tokenizer": tokenizer, "options": OPTIONS, "out": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        finetune(interrupt(tiny(tokenizer), 3), task, **settings)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def go_on(model: Any = None, on: Task = task, **changes: Any) -> Any:
        try:
            model = tiny(tokenizer) if model is None else model
            return finetune(model, on, **(settings | changes))
        except UsageError:
            for path, content in before.items():
                assert path.read_bytes() == content, "a refusal leaves the run as it was"
            raise

    return go_on


def with_another_dev_row(task: Task) -> Task:
    def load(split: str) -> Examples:
        rows = task.loader(split)
        texts = list(rows.texts[0])
        return Examples(([*texts[:-1], "a cat"] if split == "dev" else texts,), rows.labels)

    return replace(task, loader=load)


def test_other_dev_rows_are_refused(stopped: Any, task: Task) -> None:
    with pytest.raises(UsageError, match=r"dev was 96 rows .*, now 96 rows .*--overwrite to start"):
        stopped(on=with_another_dev_row(task))


def test_another_activation_is_refused(stopped: Any, tokenizer: Any) -> None:
    with pytest.raises(UsageError, match=r"settings: config.hidden_act was gelu, now relu. Use"):
        stopped(tiny(tokenizer, hidden_act="relu"))


def test_another_tokenizer_is_refused(stopped: Any, tokenizer: Any) -> None:
    other = copy.deepcopy(tokenizer)
    other.truncation_side = "left"
    with pytest.raises(UsageError, match=r"settings: tokenizer was \d+ tokens .*, now \d+ tokens"):
        stopped(tokenizer=other)


def test_other_weights_seeds_and_scores_are_refused(stopped: Any, tokenizer: Any) -> None:
    other = tiny(tokenizer)
    with torch.no_grad():
        other.classifier.bias.add_(1.0)
    with pytest.raises(UsageError, match=r"settings: weights was [0-9a-f]*, now [0-9a-f]*\. Use"):
        stopped(other)
    with pytest.raises(UsageError, match=r"settings: seed was 0, now 1\. Use"):
        stopped(options=replace(OPTIONS, seed=1))
    with pytest.raises(UsageError, match=r"settings: curve_scores was False, now True\. Use"):
        stopped(curve_scores=True)


def test_another_version_is_noted_and_no_reason_to_refuse(stopped: Any, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    text = path.read_text()
    assert json.loads(text)["kind"] == "training-settings"
    assert '"torch": "' in text
    path.write_text(text.replace('"torch": "', '"torch": "0.'))
    assert stopped().resumed_from == 2
    assert '"torch": "0.' in path.read_text(), "the versions it began with"
    assert json.loads((tmp_path / "result.json").read_text())["kind"] == "training"


def test_a_folder_has_one_writer(stopped: Any, tmp_path: Path) -> None:
    refused = pytest.raises(UsageError, match=r"is being worked on by process \d+ on ")
    with locked(tmp_path), refused:
        stopped(overwrite=True)
    assert stopped().steps == 4
    assert not list(tmp_path.glob(".*"))


def test_only_the_first_of_several_processes_holds_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked(tmp_path):
        monkeypatch.setenv("RANK", "1")
        with runs.run_folder(tmp_path) as folder:
            assert folder == tmp_path


def test_model_and_checkpoints_have_the_rights_that_the_umask_leaves(
    tokenizer: Any, task: Task, tmp_path: Path, odd_rights: Any
) -> None:
    settings = {"tokenizer": tokenizer, "options": OPTIONS, "out": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        finetune(interrupt(tiny(tokenizer), 3), task, **settings)
    assert list((tmp_path / "run").glob("checkpoint-*/model.safetensors"))
    assert odd_rights(tmp_path / "run") == {}
    finetune(tiny(tokenizer), task, **settings)
    assert odd_rights(tmp_path / "run") == {}


@pytest.mark.parametrize("moment", ["the model", "the result", "the checkpoints"])
def test_a_run_killed_before_its_last_files_gets_them(
    moment: str,
    tokenizer: Any,
    task: Task,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {"tokenizer": tokenizer, "options": replace(OPTIONS, log_every=3)}
    whole = finetune(tiny(tokenizer), task, out=tmp_path / "a", **settings)

    real = os.replace
    last = {"the model": "model.safetensors", "the result": "result.json"}

    def killed(path: Any, target: Any) -> None:
        if Path(target).name == last.get(moment):
            raise KeyboardInterrupt
        real(path, target)
        if moment == "the checkpoints" and Path(target).name == "result.json":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        finetune(tiny(tokenizer), task, out=tmp_path / "b", **settings)
    monkeypatch.undo()
    again = finetune(tiny(tokenizer), task, out=tmp_path / "b", **settings)
    assert again.steps == whole.steps == 4, "and not a step more"
    assert again.resumed_from == (None if moment == "the checkpoints" else 4)
    names = [sorted(path.name for path in (tmp_path / each).iterdir()) for each in "ab"]
    assert names[0] == names[1]
    for name in ("model.safetensors", "curve.jsonl", "config.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert again.evaluation is not None
    assert again.evaluation.scores == whole.evaluation.scores  # type: ignore[union-attr]


def test_a_folder_for_work_is_gone_on_with_and_holds_no_model(
    tokenizer: Any, task: Task, tmp_path: Path
) -> None:
    settings = {"tokenizer": tokenizer, "options": OPTIONS, "evaluation": False}
    whole = finetune(tiny(tokenizer), task, **settings)
    with pytest.raises(KeyboardInterrupt):
        finetune(interrupt(tiny(tokenizer), 3), task, work=tmp_path, **settings)
    changed = settings | {"options": replace(OPTIONS, seed=1)}
    with pytest.raises(UsageError, match=r"seed was 0, now 1\. .* or delete it to start over"):
        finetune(tiny(tokenizer), task, work=tmp_path, **changed)
    again = finetune(tiny(tokenizer), task, work=tmp_path, **settings)
    third = finetune(tiny(tokenizer), task, work=tmp_path, **settings)
    assert (again.resumed_from, again.out, third.out) == (2, None, None)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name
        assert torch.equal(value, third.model.state_dict()[name]), name
    assert third.curve == again.curve == whole.curve
    assert not (tmp_path / "config.json").exists()
    with pytest.raises(UsageError, match="Pass out or work, not both"):
        finetune(tiny(tokenizer), task, work=tmp_path, out=tmp_path, **settings)
