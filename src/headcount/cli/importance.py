"""`headcount importance MODEL --task T`: how sensitive the task's loss is to each head."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Group

from headcount.base.files import write_json
from headcount.cli import groups
from headcount.cli.common import Json, emit, plain
from headcount.cli.progress import bar
from headcount.runs.kinds.importance import ImportanceOptions


def importance(
    model: groups.Model,
    /,
    *,
    task: groups.TaskName,
    source: groups.SourceFlags = groups.SOURCE_FLAGS,
    gradient_options: groups.GradientFlags = groups.GRADIENT_FLAGS,
    keep: groups.Keep = None,
    out: Annotated[Path | None, Parameter(help="Also write the scores to this JSON file.")] = None,
    model_options: groups.ModelFlags = groups.MODEL_FLAGS,
    overwrite: groups.OverFile = False,
    as_json: Json = False,
) -> None:
    """E |∂L/∂ξ| of every head: the expected sensitivity of the loss to its gate, with its error.

    **Examples:**

    - `headcount importance ./run --task mrpc --data glue --normalize l1`
    - `headcount importance ./run --task sst2 --out importance.json --json`
    """
    options = ImportanceOptions(gradient_options=gradient_options.on(), keep=keep)
    run = groups.run_of(
        "importance", model, options, task, source, model_options, options.gradient_options.seed
    )
    groups.require_same_run(run, out, out, overwrite)
    from headcount.views.tables.grid import head_grid
    from headcount.views.tables.scores import importance_table

    with bar("gradients") as report:
        result = groups.executed(run, report=lambda done: report(done, None))
    data = plain(result.record.to_json())
    if out is not None:
        write_json(out, data)
    shades = head_grid(result.value.layout, result.value.values)
    emit(data, as_json=as_json, table=Group(importance_table(result.value), shades))
