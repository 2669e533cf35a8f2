"""Execute a run, whatever its kind: `hc.run(hc.load_record("small").run, "again")`.

A run whose model is another run finds that one's result in the store by its key, or makes it
first, once: the store is a folder with a folder for each run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from headcount.base.errors import UsageError
from headcount.base.files import expanded
from headcount.base.outputs import require_apart
from headcount.base.text import short
from headcount.runs.kinds.kind import RunContext, RunKind, RunResult
from headcount.runs.notes import Note, log
from headcount.runs.products import leaves_model, on_inputs, target_of
from headcount.runs.record import FILE, Record
from headcount.runs.run import Run

RUNS = "runs"
"""The folder of runs that others start from."""


def run(
    run: Run,
    out: str | Path | None = None,
    *,
    store: str | Path | None = None,
    overwrite: bool = False,
    command: str | None = None,
    report: Callable[..., object] | None = None,
    note: Note = log,
) -> Record:
    """Do what a run asks and give its record; what there is to write goes to `out`.

    `store` is where runs that this one starts from are found and kept: beside `out` when left out.
    `report` and `note` are those of the function that does the work.
    """
    if not isinstance(run, Run):
        raise UsageError(
            f"hc.run takes a hc.Run, not {short(run)}: hc.Run('evaluate', 'model', task='sst2')."
        )
    context = RunContext(
        out=out, store=store, overwrite=overwrite, command=command, report=report, note=note
    )
    return execute(run, context).record


def execute(run: Run, context: RunContext | None = None) -> RunResult:
    """As `run`, with the value that came out."""
    context = context or RunContext()
    if run.inputs:
        run = on_inputs(run, lambda run: _folder_of(run, context))
    if context.out is not None:
        require_apart(context.out, run.files, overwrite=context.overwrite)
    started = time.monotonic()
    output = run.options_as(RunKind).execute(run, context)
    if isinstance(output, RunResult):
        return output
    record = Record(
        run=run,
        identity=output.identity,
        result=output.result,
        rows=output.rows,
        notes=output.notes,
        command=context.command,
        seconds=round(time.monotonic() - started, 1),
    )
    return RunResult(record, output.value)


def plan(run: Run) -> dict[str, object]:
    """What a run would do, from its model and rows; nothing is measured or written."""
    return run.options_as(RunKind).plan(run)


def _folder_of(run: Run, context: RunContext) -> Path:
    """The folder of a run that another one starts from, made where it is not there.

    One that is there is asked whether it was made from the same weights and rows.
    """
    store = context.store
    if store is None:
        if context.out is None:
            raise UsageError("A run that starts from another run needs a folder: pass out.")
        store = expanded(context.out).parent / RUNS
    folder = expanded(store) / run.key
    if not leaves_model(run) and (folder / FILE).is_file():
        return folder  # its key has the content of all that it was measured on
    inside = RunContext(out=target_of(run, folder), store=store, note=context.note)
    record = execute(run, inside).record
    if not (folder / FILE).is_file():
        record.save(folder)
    return folder
