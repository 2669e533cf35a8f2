"""Options that several commands take, as they are typed; each class is made once, here.

def evaluate(model, *, opening: Opened = OPENED, scoring: Scored = SCORED): ...
scoring.on()                                 # Scoring, with what was typed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headcount.cli.typed import Typed, typed
from headcount.models.opening import Opening
from headcount.tasks.looking import Looking
from headcount.tasks.source import Source
from headcount.training.scoring import Scoring

if TYPE_CHECKING:
    from headcount.tasks import Task

    Opened = Typed
    Sourced = Typed
    Scored = Typed
    Looked = Typed
else:
    Opened = typed(Opening, "Model")
    Sourced = typed(Source, "Data")
    Scored = typed(Scoring, "Scoring")
    Looked = typed(Looking, "Rows to look at")

OPENED, SOURCED, SCORED, LOOKED = Opened(), Sourced(), Scored(), Looked()

DryRun = Annotated[bool, Parameter(negative=(), help="Say what would be done, and stop.")]
"""Type of a command's `dry_run: DryRun = False`."""


def open_model(
    name: str, opening: Typed, task: Task | None = None, **how: Any
) -> tuple[Any, Any, bool]:
    """(model on its device, tokenizer, whether its task head is new), quietly."""
    from headcount.tasks.loading import hush
    from headcount.tasks.opening import open_model as opened

    hush()
    return opened(name, opening.on(), task, **how)


def open_task(name: str | None, source: Typed) -> Task | None:
    """The task with the user's data; data without a task is refused."""
    from headcount.errors import UsageError
    from headcount.tasks import TASKS

    if name is None:
        if source.given():
            names = ", ".join(f"--{each.replace('_', '-')}" for each in source.given())
            raise UsageError(f"{names}: data goes with --task; which task's rows are they?")
        return None
    return TASKS[name](source.on())
