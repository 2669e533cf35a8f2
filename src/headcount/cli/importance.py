"""`headcount importance MODEL --task T`: how much the task's loss feels each head."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli import groups
from headcount.cli.common import Json, emit, plain
from headcount.cli.masks import mask_of
from headcount.cli.progress import bar
from headcount.files import write_json


def importance(
    model: groups.Model,
    /,
    *,
    task: groups.TaskName,
    source: groups.Sourced = groups.SOURCED,
    measuring: groups.Measured = groups.MEASURED,
    keep: groups.Keep = None,
    out: Annotated[Path | None, Parameter(help="Write the scores to this JSON file, too.")] = None,
    opening: groups.Opened = groups.OPENED,
    as_json: Json = False,
) -> None:
    """E |∂L/∂ξ| of every head: how much the loss of an example feels its gate, with its error.

    Examples: `headcount importance ./run --task mrpc --data glue --normalize l1` ·
    `headcount importance ./run --task sst2 --out importance.json --json`
    """
    options, opened = measuring.on(), groups.open_task(task, source)
    loaded, tokenizer, _ = groups.open_model(model, opening, opened)
    from headcount.report.tables.importance import page
    from headcount.sensitivity.gradients import importance as measure

    mask = mask_of(keep, loaded) if keep else None
    with bar("gradients") as told:
        report = lambda done: told(done, None)  # noqa: E731
        how = vars(options) | {"tokenizer": tokenizer, "mask": mask, "report": report}
        found = measure(loaded, opened, **how)
    data = plain({"model": model, "task": task, "seed": options.seed, **found.to_json()})
    if out is not None:
        write_json(out, data)
    emit(data, as_json=as_json, table=page(found))
