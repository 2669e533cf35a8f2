"""What cannot be is refused before anything is opened: names, and parts that do not go together."""

from __future__ import annotations

from headcount.base.errors import UsageError
from headcount.base.options import Mistakes
from headcount.models.shipped import require_model
from headcount.repair.finetune import training_of
from headcount.repair.repairs import repair_name
from headcount.runs.asked import NO_TARGET, Prune, read_ratio
from headcount.runs.run import Run
from headcount.tasks.catalog import TASKS

NEED_TASK = ("train", "evaluate", "importance")


def check_names(kind: object, model: object, task: object, *, elsewhere: bool = False) -> None:
    """Refuse a model that can be none, and an unknown task or none where one is needed.

    What is to be done `elsewhere` may name a model that cannot be found from here.
    """
    told = Mistakes()
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
    told = Mistakes()
    if isinstance(run.options, Prune):
        with told.at("options", "ratio"):
            read_ratio(run.options.method, run.options.ratio)
        with told.at():
            _check_cut(run, run.options)
    told.refuse()


def _check_cut(run: Run, asked: Prune) -> None:
    trains = asked.method.needs == "training"
    if run.task is None and (trains or asked.method.needs == "labels"):
        raise UsageError(f"The method '{asked.name}' needs a task.")
    bare = run.task is None and asked.calibration.rows is None
    if bare and asked.method.needs == "calibration":
        raise UsageError(f"The method '{asked.name}' needs calibration rows: name a task.")
    for step in asked.repair:
        name = repair_name(step)
        if run.task is None and step.needs != "calibration":
            raise UsageError(f"The repair '{name}' needs a task.")
        if run.task is None and asked.calibration.rows is None:
            raise UsageError(
                f"The repair '{name}' needs inputs like those the model will see: name a task."
            )
        if trains and step.needs == "calibration":
            raise UsageError(NO_TARGET.format(asked.name, name))
    if trains and asked.learning is None and training_of(asked.repair) is None:
        raise UsageError(
            f"The method '{asked.name}' trains gates: say learning, or repair it by finetune."
        )
