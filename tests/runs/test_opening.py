from __future__ import annotations

import pytest

from headcount.base.errors import UsageError
from headcount.runs.kinds.evaluate import Evaluate
from headcount.runs.opening import mask_of, open_run, task_of
from headcount.runs.run import Run
from headcount.runs.subject import Subjects
from runs.kinds.asking import TASK


def test_a_run_that_names_the_same_is_opened_once(trained):
    run, subjects = Run("evaluate", str(trained[1]), task=TASK, options=Evaluate()), Subjects()
    first = open_run(run, subjects)
    assert open_run(run, subjects) is first
    assert open_run(run) is not first


def test_a_task_must_be_said():
    with pytest.raises(UsageError, match="'evaluate' needs a task: pass --task"):
        task_of(Run("evaluate", "pocket", options=Evaluate()))


def test_a_mask_is_typed_or_in_a_file(trained, tmp_path):
    subject = open_run(Run("evaluate", str(trained[1]), options=Evaluate()))
    typed = mask_of("444444", subject)
    (tmp_path / "mask.json").write_text("444444")
    assert mask_of(str(tmp_path / "mask.json"), subject) == typed
