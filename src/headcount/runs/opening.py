"""What the kinds of runs share: how a run's model is opened, and what its result depends on."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.models import fingerprint
from headcount.models.numbers import read_mask
from headcount.models.shipped import locate
from headcount.runs.contents import content_of
from headcount.runs.identity import computed
from headcount.runs.run import Run
from headcount.runs.subject import Subject, Subjects, make_subject
from headcount.tasks import TASKS, Task


def name_of(run: Run) -> str:
    """The model of a run that starts from no other one, or from one that is done."""
    assert isinstance(run.model, str)
    return run.model


def task_of(run: Run) -> Task:
    """The task that a run is on, which must be said."""
    if run.task is None:
        raise UsageError(f"A run of the kind '{run.kind}' needs a task: pass --task.")
    return TASKS[run.task](run.source)


def open_run(run: Run, subjects: Subjects | None = None, *, trains: bool = False) -> Subject:
    """What a run is about, opened, or as it was opened for an earlier run that named the same."""
    name = name_of(run)

    def opened() -> Subject:
        task = None if run.task is None else task_of(run)
        return make_subject(
            name,
            task,
            source=run.source,
            model_options=run.model_options,
            trains=trains,
            seed=run.seed,
        )

    if subjects is None:
        return opened()
    content = content_of(locate(name))
    parts = (name, content, run.task, run.source, run.model_options, trains and run.seed)
    return subjects.get(repr(parts), opened)


def mask_of(text: str, subject: Subject) -> Mask:
    """A mask as it is typed, or what is in the file that is named."""
    return read_mask(text, subject.model, subject.layout)


def depends_on(
    run: Run, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, **more: Any
) -> dict[str, Any]:
    """What a measurement depends on: what was asked, the rows by content, and the model."""
    identity = computed(Subject(model=model, name=name_of(run)))
    identity |= {"kind": run.kind, "task": run.task, "options": run.to_plain()["options"], **more}
    return identity | fingerprint.identity(model, tokenizer)
