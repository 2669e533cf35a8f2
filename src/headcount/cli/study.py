"""`headcount study plan | run | status | table | watch FILE`: many runs, from one file."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from headcount.base.errors import StudyError
from headcount.cli import groups
from headcount.cli.common import Json, emit, say, warn
from headcount.cli.progress import bar
from headcount.views.tables import study as tables

if TYPE_CHECKING:
    from headcount.studies.study import Study

study = App(name="study", help="Many runs from one file: plan them, run them anywhere, watch them.")
File = Annotated[Path, Parameter(help="A study file (YAML, TOML, JSON), or a shipped study.")]
Out = Annotated[Path | None, Parameter(help="The study's folder, in place of the file's own.")]
Flag = Parameter(negative=())
Yes = Annotated[bool, Parameter(negative=(), help="Allow more than 100,000 runs.")]
EVERY = 2.0
"""Seconds between two looks of `watch`."""
IDLE = 60.0
"""Seconds without anybody at work after which it gives up."""
TERMINATED = 128 + signal.SIGTERM


def _open(file: Path, out: Path | None, yes: bool) -> Study:
    from headcount.studies.study import study as opened

    return opened(file, out, many=yes)


@study.command
def plan(file: File, /, *, out: Out = None, yes: Yes = False, as_json: Json = False) -> None:
    """Count the runs of a study file, and estimate the time of the missing ones.

    Every mistake of the file is told at once, and nothing is run. Hours are judged by finished runs
    of the same kind and method.

    **Examples:**

    - `headcount study plan methods.yaml`
    - `headcount study plan grid`
    """
    counts = _open(file, out, yes).plan()
    emit(counts.to_json(), as_json=as_json, table=tables.plan_table(counts))


@study.command
def run(
    file: File,
    /,
    *,
    out: Out = None,
    executor_options: groups.ExecutorFlags = groups.EXECUTOR_FLAGS,
    retry_failed: Annotated[bool, Flag] = False,
    restart_failed: Annotated[bool, Flag] = False,
    update: Annotated[bool, Flag] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Execute the missing runs of a study: here, in processes, on Ray or as SLURM jobs.

    The same command again, by any executor, goes on after a crash. One failure does not stop the
    rest; the exit code is 6 then. Ctrl-C and `kill` end it, and what runs is given back.

    **Examples:**

    - `headcount study run methods.yaml`
    - `headcount study run methods.yaml --executor processes --workers 4`
    - `headcount study run methods.yaml --executor ray --address auto --gpus 1`
    - `headcount study run methods.yaml --executor slurm --partition gpu --gpus 1`

    Parameters
    ----------
    retry_failed
        Try failed runs again, from where they were.
    restart_failed
        Try failed runs again, from their beginning.
    update
        Go on although the study file has changed.
    """
    study = replace(_open(file, out, yes), command=groups.command_line())
    again = "restart" if restart_failed else "retry" if retry_failed else None
    try:
        with _ended_by_kill(), bar(f"study {study.planned.name}") as progress:
            driven = study.run(
                executor_options.on(), again=again, update=update, note=warn, progress=progress
            )
    except (KeyboardInterrupt, SystemExit):
        say(f"headcount: the same command again goes on with the runs in {study.folder}.")
        raise
    if driven.left:
        say(
            f"headcount: {driven.left} runs are left to {executor_options.on().executor}; watch "
            f"them with headcount study watch {file}"
        )
    _finish(study, as_json, left=driven.left)


@contextmanager
def _ended_by_kill() -> Generator[None]:
    """Give back what runs at SIGTERM as well: started with `&` or nohup, SIGINT may be ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        say(f"headcount: Ctrl-C is ignored here, as in the background; kill {os.getpid()} ends it.")
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _finish(study: Study, as_json: bool, left: int = 0) -> None:
    """Say what became of the runs; part of them failing is exit code 6."""
    status = study.status()
    emit(status.to_json(), as_json=as_json, table=tables.status_table(status))
    if bad := status.counts["failed"] + status.counts["not run"]:
        raise StudyError(
            f"{status.counts['failed']} of {sum(status.counts.values())} runs failed, and "
            f"{bad - status.counts['failed']} could not be made because of it. Mend the cause, and "
            "try them again with --retry-failed."
        )
    if not status.over and not left:
        raise StudyError(
            f"{sum(status.counts.values()) - status.counts['done']} runs are missing, and nobody "
            f"works on them: headcount study run {study.planned.path} goes on."
        )


@study.command
def status(file: File, /, *, out: Out = None, yes: Yes = False, as_json: Json = False) -> None:
    """The state of each run of a study: done, running, stale, failed, not run, planned.

    **Examples:**

    - `headcount study status methods.yaml`
    """
    states = _open(file, out, yes).status()
    emit(states.to_json(), as_json=as_json, table=tables.status_table(states))


@study.command
def table(file: File, /, *, out: Out = None, yes: Yes = False, as_json: Json = False) -> None:
    """The finished runs: means over seeds with intervals, and all of them as CSV and Parquet.

    **Examples:**

    - `headcount study table methods.yaml`
    """
    opened = _open(file, out, yes)
    summary = opened.table()
    for text in summary.damaged:
        warn(text)
    paths = summary.save(opened.folder)
    data: dict[str, Any] = summary.to_json() | {"files": paths}
    emit(data, as_json=as_json, table=tables.summary_table(summary))
    say(f"headcount: all {len(summary.rows)} runs are in {' and '.join(map(str, paths))}.")


@study.command
def watch(file: File, /, *, out: Out = None, yes: Yes = False, as_json: Json = False) -> None:
    """Follow a study until all its runs have ended, wherever they are executed.

    Where nobody works on what is left, and no SLURM job is to come, it ends with exit code 6.

    **Examples:**

    - `headcount study watch methods.yaml`
    """
    study, last, seen = _open(file, out, yes), "", time.monotonic()
    with bar(f"study {study.planned.name}") as progress:
        while not (now := study.status()).over:
            line = tables.status_line(now)
            progress(now.counts["done"], sum(now.counts.values()))
            if line != last and not sys.stderr.isatty():
                say(f"headcount: {line}")
            last = line
            if study.is_worked_on(now):
                seen = time.monotonic()
            elif time.monotonic() - seen > IDLE:
                break
            time.sleep(EVERY)
    _finish(study, as_json)
