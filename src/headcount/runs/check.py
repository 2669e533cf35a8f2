"""What cannot be is refused before anything is opened: names, and parts that do not go together."""

from __future__ import annotations

from headcount.errors import UsageError
from headcount.models.shipped import require_model
from headcount.options import Gathered
from headcount.runs.asked import Prune, read_ratio
from headcount.runs.run import Run
from headcount.tasks.catalog import TASKS

NEED_TASK = ("train", "evaluate", "importance")


def check_names(kind: object, model: object, task: object, *, elsewhere: bool = False) -> None:
    """Refuse a model that can be none, and an unknown task or none where one is needed.

    What is to be done `elsewhere` may name a model that cannot be found from here.
    """
    told = Gathered()
    with told.at("model"):
        if isinstance(model, str) and kind != "probe" and not elsewhere:
            require_model(model)
    with told.at("task"):
        if isinstance(task, str):
            TASKS.require(task)
        elif kind in NEED_TASK:
            raise UsageError(f"A run of the kind '{kind}' needs a task.")
    told.refuse()


def check_parts(run: Run) -> None:
    """Refuse parts that do not go together."""
    told = Gathered()
    if isinstance(run.options, Prune):
        with told.at("options", "ratio"):
            read_ratio(run.options.method, run.options.ratio)
        with told.at():
            _check_cut(run, run.options)
    told.refuse()


def _check_cut(run: Run, asked: Prune) -> None:
    method, repair = asked.method, asked.repair
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
