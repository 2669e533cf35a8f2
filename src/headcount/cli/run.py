"""`headcount run RECORD --out DIR`: execute the run of a record again."""

from __future__ import annotations

from pathlib import Path

from headcount.cli import groups
from headcount.cli.common import Json, emit, warn
from headcount.cli.progress import waiting
from headcount.views.tables.records import record_table


def run(
    record: Path,
    /,
    *,
    out: Path | None = None,
    store: Path | None = None,
    overwrite: groups.Overwrite = False,
    as_json: Json = False,
) -> None:
    """Execute the run of a record again, or a run from a JSON file.

    A record has the whole run: model, task, options, seed. The result is the same where the model
    and the data are the same; what it depends on is compared with the record, and differences are
    reported.

    **Examples:**

    - `headcount run small/record.json --out again`
    - `headcount run run.json`

    Parameters
    ----------
    record
        A record.json, a folder with one, or a JSON file with a run alone.
    out
        Folder for what the run writes.
    store
        Folder of the runs that this one starts from; beside --out by default.
    """
    from headcount.runs.record import Record, read_run

    request, before = read_run(record)  # before torch is imported
    from headcount.runs.execute import run as run_again
    from headcount.tasks.loading import hush

    hush()
    with waiting(f"running {request.kind} again"):
        result = run_again(
            request, out, store=store, overwrite=overwrite, command=groups.command_line(), note=warn
        )
    if isinstance(before, Record) and (changed := before.changed(result)):
        warn(f"The result depends on something other than the record: {changed}.")
    emit(result.to_json() | {"out": out}, as_json=as_json, table=record_table(result))
