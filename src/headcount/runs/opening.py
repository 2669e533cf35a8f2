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
from headcount.runs.kinds.prune import Prune
from headcount.runs.run import InMemory, Run
from headcount.runs.subject import Subject, Subjects, make_subject
from headcount.tasks import Task
from headcount.tasks.catalog import read_task


def name_of(run: Run) -> str:
    """The model of a run that starts from no other one, or from one that is done."""
    if isinstance(run.model, InMemory):
        raise UsageError(
            f"The model '{run.model.name}' of this run was in the memory of the process that asked "
            "for it: name a folder or a model of the hub to have it run again, or elsewhere."
        )
    assert isinstance(run.model, str)
    return run.model


def task_of(run: Run) -> Task:
    """The task that a run is on, which must be said."""
    if run.task is None:
        raise UsageError(f"A run of the kind '{run.kind}' needs a task: pass --task.")
    return read_task(run.task, run.source)


def open_run(run: Run, subjects: Subjects | None = None, *, trains: bool = False) -> Subject:
    """What a run is about, opened, or as it was opened for an earlier run that named the same."""

    def opened() -> Subject:
        return make_subject(
            name_of(run),
            run.task,
            source=run.source,
            model_options=run.model_options,
            trains=trains,
            seed=run.seed,
        )

    if subjects is None:
        return opened()
    return subjects.get(subject_key(run, trains=trains), opened)


def open_pruned(run: Run, subjects: Subjects | None) -> Subject:
    """The subject of a prune; a new task head is drawn by the seed of the run."""
    return open_run(run, subjects, trains=run.options_as(Prune).trains)


def subject_key(run: Run, *, trains: bool) -> str:
    """What tells the subject of a run from those of others."""
    if isinstance(run.model, InMemory):
        return run.model.fingerprint
    name = name_of(run)
    parts = (name, content_of(locate(name)), run.task, run.source, run.model_options)
    return repr((*parts, trains and run.seed))


def mask_of(text: str, subject: Subject) -> Mask:
    """A mask as it is typed, or what is in the file that is named."""
    return read_mask(text, subject.model, subject.layout)


def depends_on(
    run: Run, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, **more: object
) -> dict[str, Any]:
    """What a measurement depends on: what was asked, the rows by content, and the model."""
    identity = computed(Subject(model=model, name=name_of(run)))
    identity |= {"kind": run.kind, "task": run.task, "options": run.to_plain()["options"], **more}
    return identity | fingerprint.identity(model, tokenizer)
