"""One run carried out for a study, in whatever process: claimed, done, published.

    work("runs", Job(run=run.to_plain()))      # {"key": …, "state": "done", "error": None}

Everything goes through the study's folder. What this returns only says how it ended: the folder is
the truth. As a program (`python -m headcount.studies.worker FOLDER`) it reads a job from each line
and answers with one.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headcount.base.errors import HeadcountError, StudyError, disk_is_full, in_words
from headcount.base.faults import danger
from headcount.base.files import write_json
from headcount.base.json_object import JsonDict
from headcount.base.plugins import load_plugin, loaded_plugins
from headcount.runs.execute import execute
from headcount.runs.kinds.kind import RunContext, RunResult
from headcount.runs.kinds.prune import FREE, Prune
from headcount.runs.notes import Note, log
from headcount.runs.products import leaves_model, on_inputs, target_of
from headcount.runs.record import FILE, Record, load_record
from headcount.runs.run import Run
from headcount.studies.lease import Lease, LostLeaseError
from headcount.studies.ledger import Ledger

if TYPE_CHECKING:
    from headcount.runs.subject import Subjects

MADE = "made"
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)
"""Signals that end a run; the last is SLURM's before preemption."""
SMALL = 2**20
"""Bytes of the largest file that stays of a model that is not kept."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run, and how it is carried out, in plain data."""

    run: Run | Mapping[str, Any]
    """The run itself, or, where it goes to another process, its plain form."""
    key: str | None = None
    """The run's key when it was planned; what it names may have changed since."""
    keep: bool = False
    """Keep the model it makes."""
    launch: tuple[str, ...] = ()
    """What starts it as several processes."""
    threads: int = 1
    lease: float = 60.0
    again: bool = False
    """Take it up although it failed before."""
    plugins: tuple[str, ...] = field(default_factory=loaded_plugins)
    """Scripts to execute first (`--plugin`)."""
    logging: Mapping[str, Any] = field(default_factory=dict)
    """Options of `Logging`: where its training and its scores are logged."""

    def read(self) -> Run:
        """The run, with a key that is computed anew."""
        return replace(self.run) if isinstance(self.run, Run) else Run.read(self.run)

    def to_plain(self) -> JsonDict:
        """Plain data; `Job(**plain)` gives it back."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return plain | {"run": self.read().to_plain()}


class Bench(Protocol):
    """What a process has at hand for the runs that it works on."""

    subjects: Subjects | None
    note: Note

    def result(self, key: str) -> RunResult | None:
        """The result of a run that was scored together with another one."""
        ...


def work(folder: str | Path, job: Job | Mapping[str, Any], bench: Bench | None = None) -> JsonDict:
    """Carry a run out, unless it is done or another worker's; how that ended."""
    job = job if isinstance(job, Job) else Job(**job)
    for script in job.plugins:
        load_plugin(script)
    ledger, run = Ledger(folder, job.lease), job.read()
    key = job.key or run.key
    lease: Lease | None = None
    try:
        with _undisturbed():
            lease = ledger.claim(key, again=job.again)
        if lease is None:
            return {"key": key, "state": ledger.state(key).name, "error": None}
        made_in = ledger.work_of(key, lease.epoch) / MADE
        _carry(ledger, run, replace(job, key=key), made_in, bench)
        with _undisturbed():
            ledger.publish(key, lease, made_in)
        return {"key": key, "state": "done", "error": None}
    except (KeyboardInterrupt, SystemExit):
        if lease is not None:
            lease.release()
        raise
    except BaseException as error:
        if lease is None:
            return {"key": key, "state": "unwritten", "error": str(error)}
        return _failed(ledger, key, lease, error)


@contextmanager
def _undisturbed() -> Generator[None]:
    """Keep signals waiting: a lease is taken and known to be, or not taken; so is a place.

    By handlers, because a signal that this thread blocks goes to another one, and interrupts this.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # no signal interrupts it
        return
    waiting: list[int] = []
    before: dict[int, Any] = {}
    try:
        for number in ENDING:
            if signal.getsignal(number) is None:
                continue  # not Python's: it could not be put back
            before[number] = signal.signal(number, lambda got, _: waiting.append(got))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in waiting:
            signal.raise_signal(number)


def _failed(ledger: Ledger, key: str, lease: Lease, error: BaseException) -> JsonDict:
    text = str(error) if isinstance(error, HeadcountError) else in_words(error)
    if disk_is_full(error, quoted=True):  # that is nothing about the run
        lease.release()
        sentence = text if text.startswith("Cannot write") else f"Cannot write: {text}"
        return {"key": key, "state": "unwritten", "error": sentence}
    failure = {
        "error": text,
        "exit_code": getattr(error, "exit_code", 1),
        "traceback": "".join(traceback.format_exception(error))[-20_000:],
    }
    try:
        ledger.fail(key, lease, failure)
    except LostLeaseError as lost:
        lease.end()
        return {"key": key, "state": "lost", "error": str(lost)}
    except HeadcountError:  # a full disk: not even the failure can be written
        lease.release()
        return {"key": key, "state": "unwritten", "error": text}
    return {"key": key, "state": "failed", "error": text}


def _carry(ledger: Ledger, run: Run, job: Job, folder: Path, bench: Bench | None) -> None:
    """Fill the folder of a run with its record and what it leaves."""
    if (folder / FILE).is_file() and (folder.parent / f".{MADE}.done").is_file():
        return  # all was there when its worker died
    _require_unchanged(job, folder.parent)
    ready = on_inputs(run, lambda before: ledger.folder_of(before.key)) if run.inputs else run
    if job.launch:
        result = RunResult(_launched(ready, job, folder), None)
    elif not run.options.opens_model:
        result = execute(ready)
    else:
        result = _measured(ready, job, folder, bench)
    _require_unchanged(job, folder.parent)
    folder.mkdir(parents=True, exist_ok=True)
    replace(result.record, run=run).save(folder)
    if leaves_model(run) and not job.keep:
        _strip(folder)
    if run.kind == "prune":
        _keep_predictions(result.value, folder, job.key or run.key)
    danger()
    (folder.parent / f".{MADE}.done").touch()


def _require_unchanged(job: Job, work: Path) -> None:
    """Refuse a run on other files than were planned with; nothing is left to go on from."""
    run = job.read()
    if run.key != job.key:
        shutil.rmtree(work, ignore_errors=True)
        names = ", ".join(sorted(_files(run))) or "a model or data"
        raise StudyError(
            f"What the run reads has changed since the study was planned, or is not the same on "
            f"this machine: {names}. Put it back and pass --retry-failed, or go on with what is "
            "there now by --update."
        )


def _files(run: Run) -> set[str]:
    """The files and folders that a run and those before it name."""
    names = {name for name in run.files if os.path.isabs(name) or os.path.exists(name)}
    return names.union(*map(_files, run.inputs))


def _keep_predictions(value: object, folder: Path, key: str) -> None:
    """Write what a pruned model predicts row by row: a search compares it with all heads."""
    from headcount.studies import outcome
    from headcount.training.evaluation import Evaluation

    scored = (None, value) if isinstance(value, Evaluation) else getattr(value, "scored", None)
    if scored is not None:
        outcome.keep(scored[1], folder, key, outcome.PREDICTIONS)


def _measured(run: Run, job: Job, folder: Path, bench: Bench | None) -> RunResult:
    import torch

    from headcount.tasks.loading import hush
    from headcount.training.logging import Logging

    hush()
    torch.set_num_threads(job.threads)
    if bench is not None and (result := bench.result(job.key or run.key)) is not None:
        return result
    subjects, note = (None, log) if bench is None else (bench.subjects, bench.note)
    subjects = subjects or opened_subjects()
    target, logging = target_of(run, folder), Logging(**job.logging)
    if run.kind != "prune" or job.keep or target is None:
        context = RunContext(out=target, subjects=subjects, note=note, logging=logging)
        return execute(run, context)
    free = isinstance(run.options, Prune) and run.options.ratio == FREE
    context = RunContext(
        work=folder.parent / "cutting",
        subjects=subjects,
        may_close=free,
        note=note,
        logging=logging,
    )
    result = execute(run, context)
    if (trace := getattr(result.value, "trace", None)) is not None:
        folder.mkdir(parents=True, exist_ok=True)
        trace.save(folder / "gates.npz")
    return result


@cache
def opened_subjects() -> Subjects:
    """What this process has opened for its last runs."""
    from headcount.runs.subject import Subjects

    return Subjects()


def _launched(run: Run, job: Job, folder: Path) -> Record:
    """The run in processes of its own, started by a command such as accelerate launch."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    request = folder.parent / "run.json"
    write_json(request, run.to_plain())
    target = target_of(run, folder)
    out = [] if target is None else ["--out", str(target)]
    plugins = [word for script in job.plugins for word in ("--plugin", script)]
    command = [*job.launch, "-m", "headcount", "run", str(request), *out, *plugins, "--json"]
    threads = {"OMP_NUM_THREADS": str(job.threads)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **threads}
        )
    except OSError as error:
        raise StudyError(f"Cannot start {command[0]}: {error.strerror or error}.") from error
    if done.returncode:
        text = " ".join(done.stderr.split())[-500:]
        raise StudyError(f"{' '.join(job.launch)} ended with {done.returncode}: {text}")
    if (folder / FILE).is_file():
        return load_record(folder)
    return Record.from_json(json.loads(done.stdout), " ".join(command))


def _strip(folder: Path) -> None:
    """Delete the weights and vocabularies of a model that nobody starts from."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != FILE and path.stat().st_size > SMALL:
            path.unlink()


def main(argv: list[str]) -> int:
    """Carry out the jobs that come in on stdin, one a line; answer each with a line on stdout."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is talk
    for line in sys.stdin:
        answers.write(json.dumps(work(argv[0], json.loads(line))) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
