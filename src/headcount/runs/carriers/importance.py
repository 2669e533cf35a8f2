"""How much a task's loss feels each head, from a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headcount.base.options import to_plain
from headcount.runs.carriers.common import RunOutput, depends_on, mask_of, open_run
from headcount.runs.cutting import used_rows
from headcount.runs.kinds import ImportanceOptions
from headcount.runs.run import Run
from headcount.runs.subject import Subjects
from headcount.sensitivity.gradients import importance as measure


def importance(
    run: Run,
    out: object,
    *,
    report: Callable[[int], None] | None,
    subjects: Subjects | None = None,
    **_: Any,
) -> RunOutput:
    """Measure it; the scores are in the record."""
    asked, subject = run.asked(ImportanceOptions), open_run(run, subjects)
    task = subject.need_task()
    mask = mask_of(asked.keep, subject) if asked.keep else None
    how = to_plain(asked.gradient_options) | {"tokenizer": subject.tokenizer, "mask": mask}
    found = measure(subject.model, task, report=report, **how)
    split = asked.gradient_options.split or subject.looked_at
    rows = subject.rows_of(split)
    result = {"model": run.model, "task": task.name, "seed": asked.gradient_options.seed}
    about = depends_on(run, subject.model, subject.tokenizer, rows=rows)
    used = {"measured": used_rows(rows, split) | {"sampled": asked.gradient_options.samples}}
    numbers = found.to_json()
    return RunOutput(result | {"predicts": numbers["kind"], **numbers}, about, used, found)
