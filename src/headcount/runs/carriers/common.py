"""What the kinds of runs share: how a run's model is opened, and the form of what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.models import fingerprint
from headcount.models.numbers import read_mask
from headcount.models.shipped import locate
from headcount.runs.contents import content_of
from headcount.runs.cutting import used_rows
from headcount.runs.identity import computed
from headcount.runs.record import Record
from headcount.runs.run import Run
from headcount.runs.subject import Subject, Subjects, make_subject
from headcount.tasks import TASKS, Task
from headcount.tasks.encoding import EncodedRows, rows_fingerprint


@dataclass(frozen=True, eq=False)
class RunResult:
    """A finished run: its record, and what came out as the library's own value."""

    record: Record
    value: Any


@dataclass(frozen=True, eq=False)
class RunOutput:
    """What came out of a run, before it is put on record."""

    result: Mapping[str, Any]
    identity: Mapping[str, Any]
    rows: Mapping[str, Any]
    value: Any
    notes: tuple[str, ...] = ()


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
    how: Any = {
        "source": run.source,
        "model_options": run.model_options,
        "trains": trains,
        "seed": run.seed,
    }

    def opened() -> Subject:
        return make_subject(name, None if run.task is None else task_of(run), **how)

    if subjects is None:
        return opened()
    parts = (
        name,
        content_of(locate(name)),
        run.task,
        run.source,
        run.model_options,
        trains and run.seed,
    )
    return subjects.get(repr(parts), opened)


def mask_of(text: str, subject: Subject) -> Mask:
    """A mask as it is typed, or what is in the file that is named."""
    return read_mask(text, subject.model, subject.layout)


def depends_on(
    run: Run, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, **more: Any
) -> dict[str, Any]:
    """What a measurement depends on: what was asked, the rows by content, and the model."""
    asked = computed(Subject(model=model, name=name_of(run)))
    asked |= {"kind": run.kind, "task": run.task, "options": run.to_plain()["options"], **more}
    return asked | fingerprint.identity(model, tokenizer)


def used_inputs(rows: EncodedRows, name: str) -> dict[str, Any]:
    """Inputs without labels as a record tells them."""
    return used_rows(rows_fingerprint(rows), name)
