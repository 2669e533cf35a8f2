"""`headcount run RECORD --out DIR`: what a record asked, asked again."""

from __future__ import annotations

from pathlib import Path

from headcount.cli import groups
from headcount.cli import method_options as cuts
from headcount.cli.common import Json, emit, warn
from headcount.cli.progress import waiting
from headcount.views.tables.records import record_table


def run(
    record: Path,
    /,
    *,
    out: Path | None = None,
    store: Path | None = None,
    overwrite: cuts.Overwrite = False,
    as_json: Json = False,
) -> None:
    """Carry out the run of a record, or a run that is written down, again.

    A record holds what was asked in full: model, task, options, seed. The result is the same where
    the model and the data are the same; it is held against the record's own, and a difference in
    what it depends on is told.

    **Examples:**

    - `headcount run small/record.json --out again`
    - `headcount run run.json`

    Parameters
    ----------
    record
        A record.json, a folder with one, or a JSON file with a run alone.
    out
        Where what there is to write goes.
    store
        Where runs that this one starts from are kept; beside --out when left out.
    """
    from headcount.runs.record import Record, read_run

    asked, then = read_run(record)  # before torch takes its seconds
    from headcount.runs.execute import run as run_again
    from headcount.tasks.loading import hush

    hush()
    with waiting(f"running {asked.kind} again"):
        found = run_again(
            asked, out, store=store, overwrite=overwrite, command=groups.command_line(), note=warn
        )
    if isinstance(then, Record) and (changed := then.changed(found)):
        warn(f"This depends on something else than the record did: {changed}.")
    emit(found.to_json() | {"out": out}, as_json=as_json, table=record_table(found))
