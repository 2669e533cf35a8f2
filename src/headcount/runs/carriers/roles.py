"""What every head does on data, from a run."""

from __future__ import annotations

from typing import Any

from headcount.behaviour.inputs import role_inputs
from headcount.behaviour.measure import Progress
from headcount.behaviour.measure import roles as measure
from headcount.models import fingerprint
from headcount.runs.carriers.common import (
    RunOutput,
    depends_on,
    name_of,
    task_of,
    used_inputs,
)
from headcount.runs.cutting import used_rows
from headcount.runs.kinds import RolesOptions
from headcount.runs.run import Run
from headcount.runs.subject import Subject
from headcount.runs.values import told
from headcount.tasks.opening import open_model


def roles(run: Run, out: object, *, report: Progress | None, **more: Any) -> RunOutput:
    """Measure them on what the run reads; where it scores, on the task's own split."""
    asked, task = run.asked(RolesOptions), None if run.task is None else task_of(run)
    scored = task if asked.role_options.alone else None
    model, tokenizer, _ = open_model(name_of(run), run.model_options, scored, reads=True)
    pruned = open_model(asked.pruned, run.model_options, scored)[0] if asked.pruned else None
    rows, name = role_inputs(model, tokenizer, asked.input_options, task)
    found = measure(
        model,
        rows,
        task=task,
        samples=asked.input_options.most,
        max_length=asked.input_options.max_length,
        seed=asked.input_options.seed,
        tokenizer=tokenizer,
        name=name,
        progress=report,
        pruned=pruned,
        **vars(asked.role_options),
    )
    after = {} if pruned is None else {"pruned": fingerprint.identity(pruned, tokenizer)}
    about = depends_on(run, model, tokenizer, inputs=told(rows), **after)
    used = {"measured": used_inputs(rows, name)}
    if scored is not None:
        about["scored"] = Subject(model=model, task=scored).rows_of(scored.evaluation)
        limit = {"sampled": asked.role_options.limit}
        used["scored"] = used_rows(about["scored"], scored.evaluation) | limit
    return RunOutput(found.to_json(), about, used, found)
