"""What cannot be is refused before anything is opened: names, and parts that do not go together."""

from __future__ import annotations

from headcount.errors import UsageError
from headcount.models.shipped import require_model
from headcount.runs.asked import Prune, read_ratio
from headcount.runs.run import Run
from headcount.tasks.catalog import TASKS

NEED_TASK = ("train", "evaluate", "importance")


def check_run(run: Run) -> None:
    """Refuse a run that cannot be carried out, as far as that is seen without its model."""
    if isinstance(run.model, str) and run.kind != "probe":
        require_model(run.model)
    if run.task is not None:
        TASKS.require(run.task)
    elif run.kind in NEED_TASK:
        raise UsageError(f"A run of the kind '{run.kind}' needs a task.")
    if isinstance(run.options, Prune):
        _check_cut(run, run.options)


def _check_cut(run: Run, asked: Prune) -> None:
    method, repair = asked.method, asked.repair
    read_ratio(method, asked.ratio)
    trains = method.needs == "training"
    if run.task is None and (trains or method.needs == "rows" or repair.train is not None):
        raise UsageError(f"The method '{asked.name}' and training need a task.")
    if run.task is None and repair.recover is not None and asked.looking.inputs is None:
        raise UsageError("Recovery needs inputs like those the model will see: name a task.")
    if trains and repair.recover is not None:
        raise UsageError(
            f"The method '{asked.name}' trains the weights with its gates, so there is no full "
            "model to recover towards: leave out repair.recover."
        )
    if trains and asked.learning is None and repair.train is None:
        raise UsageError(f"The method '{asked.name}' trains gates: say learning or repair.train.")
