from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.pruning.random import Random
from headcount.repair.finetune import Finetune
from headcount.runs.kinds.evaluate import Evaluate
from headcount.runs.kinds.prune import Prune
from headcount.runs.opening import mask_of, open_pruned, open_run, task_of
from headcount.runs.run import Run
from headcount.runs.subject import Subjects
from headcount.training.scoring import Scoring
from runs.kinds.asking import TASK


def test_a_run_that_names_the_same_is_opened_once(trained):
    run, subjects = Run("evaluate", str(trained[1]), task=TASK, options=Evaluate()), Subjects()
    first = open_run(run, subjects)
    assert open_run(run, subjects) is first
    assert open_run(run) is not first


def test_a_new_task_head_has_the_seed_of_the_run():
    options = Prune(method=Random(), ratio=0.5, repair=(Finetune(),), scoring=Scoring(seed=7))
    run, subjects = Run("prune", "pocket", task=TASK, options=options), Subjects()
    first, other = (open_pruned(replace(run, seed=seed), subjects) for seed in (0, 1))
    assert (first.fresh, other.fresh) == (True, True)
    assert open_pruned(run, subjects) is first
    one, two = (weights(subject.model) for subject in (first, other))
    changed = [name for name in one if not torch.equal(one[name], two[name])]
    assert {name.split(".")[0] for name in changed} == {"classifier"}
    assert all(
        torch.equal(two[name], own) for name, own in weights(first.with_head(1).model).items()
    )
    assert first.with_head(0) is first


def weights(model):
    return dict(model.named_parameters())


def test_a_task_must_be_said():
    with pytest.raises(UsageError, match="'evaluate' needs a task: pass --task"):
        task_of(Run("evaluate", "pocket", options=Evaluate()))


def test_a_mask_is_typed_or_in_a_file(trained, tmp_path):
    subject = open_run(Run("evaluate", str(trained[1]), options=Evaluate()))
    typed = mask_of("444444", subject)
    (tmp_path / "mask.json").write_text("444444")
    assert mask_of(str(tmp_path / "mask.json"), subject) == typed
