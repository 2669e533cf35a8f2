"""What cannot be is refused before anything is opened: names, and parts that do not go together."""

from __future__ import annotations

from typing import Any

from headcount.base.errors import UsageError
from headcount.base.options import Mistakes
from headcount.models.shipped import require_model
from headcount.repair.finetune import training_of
from headcount.repair.repairs import repair_name
from headcount.runs.kinds import KINDS
from headcount.runs.kinds.kind import RunKind
from headcount.runs.kinds.prune import NO_TARGET, Prune, read_ratio
from headcount.runs.run import Run
from headcount.tasks.catalog import TASKS


def check_names(kind: object, model: object, task: object, *, elsewhere: bool = False) -> None:
    """Refuse a model that can be none, and an unknown task or none where one is needed.

    What is to be done `elsewhere` may name a model that cannot be found from here.
    """
    mistakes, known = Mistakes(), isinstance(kind, str) and kind in KINDS
    options: Any = KINDS[str(kind)] if known else RunKind
    with mistakes.at("model"):
        if isinstance(model, str) and options.opens_model and not elsewhere:
            require_model(model)
    with mistakes.at("task"):
        if isinstance(task, str):
            TASKS.require(task)
        elif options.needs_task:
            raise UsageError(f"A run of the kind '{kind}' needs a task.")
    mistakes.refuse()


def check_parts(run: Run) -> None:
    """Refuse parts that do not go together."""
    mistakes = Mistakes()
    if isinstance(run.options, Prune):
        with mistakes.at("options", "ratio"):
            read_ratio(run.options.method, run.options.ratio)
        with mistakes.at():
            _check_prune(run, run.options)
    mistakes.refuse()


def _check_prune(run: Run, options: Prune) -> None:
    trains = options.method.needs == "training"
    if run.task is None and (trains or options.method.needs == "labels"):
        raise UsageError(f"The method '{options.name}' needs a task.")
    bare = run.task is None and options.calibration.rows is None
    if bare and options.method.needs == "calibration":
        raise UsageError(f"The method '{options.name}' needs calibration rows: name a task.")
    for step in options.repair:
        name = repair_name(step)
        if run.task is None and step.needs != "calibration":
            raise UsageError(f"The repair '{name}' needs a task.")
        if run.task is None and options.calibration.rows is None:
            raise UsageError(
                f"The repair '{name}' needs inputs like those the model will see: name a task."
            )
        if trains and step.needs == "calibration":
            raise UsageError(NO_TARGET.format(options.name, name))
    if trains and options.learning is None and training_of(options.repair) is None:
        raise UsageError(
            f"The method '{options.name}' trains gates: say learning, or repair it by finetune."
        )
