"""Carry out a run, whatever its kind: `hc.run(hc.load_record("small").run, "again")`.

A run whose model is another run finds that one's result in the store by its key, or makes it
first, once: the store is a folder with a folder for each run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from headcount.base.errors import UsageError
from headcount.base.files import expanded
from headcount.base.outputs import require_apart
from headcount.base.registry import Registry
from headcount.base.text import short
from headcount.runs.carriers.common import RunResult
from headcount.runs.notes import Note, log
from headcount.runs.probe import probe
from headcount.runs.products import MODELS, on_inputs, target_of
from headcount.runs.record import COMMON, FILE, Record
from headcount.runs.run import KINDS, Run

RUNS = "runs"
"""The folder of runs that others start from."""
Report = Callable[..., object]

CARRIERS = Registry("kind of run")
for _kind in KINDS:
    if _kind.name != "probe":
        _where = f"headcount.runs.carriers.{_kind.name}:{_kind.name}"
        CARRIERS.add(_kind.name, _where, _kind.summary)


def run(
    asked: Run,
    out: str | Path | None = None,
    *,
    store: str | Path | None = None,
    overwrite: bool = False,
    command: str | None = None,
    report: Report | None = None,
    note: Note = log,
) -> Record:
    """Do what a run asks and give its record; what there is to write goes to `out`.

    `store` is where runs that this one starts from are found and kept: beside `out` when left out.
    `report` and `note` are those of the function that does the work.
    """
    if not isinstance(asked, Run):
        raise UsageError(
            f"hc.run takes a hc.Run, not {short(asked)}: hc.Run('evaluate', 'model', task='sst2')."
        )
    how: dict[str, Any] = {"store": store, "overwrite": overwrite, "command": command}
    return carry(asked, out, report=report, note=note, **how).record


def carry(
    run: Run,
    out: str | Path | None = None,
    *,
    store: str | Path | None = None,
    overwrite: bool = False,
    command: str | None = None,
    report: Report | None = None,
    note: Note = log,
    **more: Any,
) -> RunResult:
    """As `run`, with the value that came out; `more` is for the kind that understands it."""
    if run.inputs:
        run = on_inputs(run, lambda each: _made(each, out, store, note))
    if out is not None:
        require_apart(out, run.files, overwrite=overwrite)
    started = time.monotonic()
    how: dict[str, Any] = {"overwrite": overwrite, "command": command, "note": note, **more}
    if run.kind == "probe":
        return RunResult(probe(run), None)
    found = CARRIERS[run.kind](run, out, report=report, **how)
    if isinstance(found, RunResult):
        return found
    result = {name: each for name, each in found.result.items() if name not in COMMON}
    record = Record(
        run=run, identity=found.identity, result=result, rows=found.rows, command=command,
        notes=found.notes, seconds=round(time.monotonic() - started, 1),
    )  # fmt: skip
    return RunResult(record, found.value)


def plan(run: Run) -> dict[str, Any]:
    """What a run would do, from its model and rows; nothing is measured or written."""
    return import_module(f"headcount.runs.carriers.{run.kind}").plan(run)


def _made(run: Run, out: str | Path | None, store: str | Path | None, note: Note) -> Path:
    """The folder of a run that another one starts from, made where it is not there.

    One that is there is asked whether it was made from the same weights and rows.
    """
    if store is None:
        if out is None:
            raise UsageError("A run that starts from another run needs a folder: pass out.")
        store = expanded(out).parent / RUNS
    folder = expanded(store) / run.key
    if run.kind not in MODELS and (folder / FILE).is_file():
        return folder  # its key has the content of all that it was measured on
    record = carry(run, target_of(run, folder), store=store, note=note).record
    if not (folder / FILE).is_file():
        record.save(folder)
    return folder
