"""What cannot be is seen without opening anything."""

from __future__ import annotations

from typing import Any

import pytest

import headcount as hc
from headcount.base.errors import NotFoundError, UsageError
from headcount.runs.check import check_names, check_parts
from headcount.runs.kinds.evaluate import Evaluate
from headcount.runs.kinds.probe import Probe
from headcount.runs.run import Run

SHORT = hc.Finetune(steps=1)


def check_run(run: Run) -> None:
    """What a study file's run goes through."""
    check_names(run.kind, run.model, run.task)
    check_parts(run)


def cut(method: Any, task: str | None = "sst2", **how: Any) -> Run:
    return Run("prune", "pocket", task=task, options=hc.Prune(method=method, **how))


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (cut(hc.Random()), "needs a ratio"),
        (cut(hc.Surgeon(), None, ratio=0.5), "needs calibration rows: name a task"),
        (cut(hc.Importance(), None, ratio=0.5), "needs a task"),
        (cut(hc.Random(), None, ratio=0.5, repair=(SHORT,)), "needs a task"),
        (cut(hc.Random(), None, ratio=0.5, repair=(hc.Recover(),)), "inputs like those"),
        (cut(hc.StraightThrough(), ratio=0.5), "say learning, or repair it by finetune"),
        (
            cut(hc.Subset(), ratio=0.5, repair=(hc.Recover(), SHORT)),
            "no full model that the repair 'recover'",
        ),
        (Run("evaluate", "pocket", options=Evaluate()), "needs a task"),
        (Run("evaluate", "pocket", task="sst3", options=Evaluate()), "Did you mean 'sst2'"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(run: Run, text: str):
    with pytest.raises(UsageError, match=text):
        check_run(run)


def test_a_model_must_be_there_and_what_can_be_is_let_through():
    with pytest.raises(NotFoundError, match=r"no model '\./nowhere'"):
        check_run(Run("evaluate", "./nowhere", task="sst2", options=Evaluate()))
    assert check_run(cut(hc.Random(), None, ratio=0.5)) is None
    assert check_run(Run("probe", "./nowhere", options=Probe())) is None
