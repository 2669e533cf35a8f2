"""Curves, comparisons and sweeps: a plan of prunes of one subject, driven, and read back.

Every prune is a run of the ledger in the study's folder: any executor carries it out, a study file
that asks for the same finds it there, and the same call again computes what is missing.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import HeadcountError, StudyError, UsageError
from headcount.base.files import expanded, locked
from headcount.base.options import to_plain
from headcount.models.model_options import ModelOptions
from headcount.runs.cutting import PruningRun, full_key
from headcount.runs.identity import identity
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import Note, log
from headcount.runs.opening import subject_key
from headcount.runs.record import FILE, Record, id_of, load_record
from headcount.runs.run import InMemory, Run
from headcount.runs.subject import Subject, Subjects, make_subject
from headcount.runs.values import content
from headcount.studies import outcome
from headcount.studies.driver import Progress
from headcount.studies.executors.protocol import ExecutorOptions
from headcount.studies.parts import absolute
from headcount.studies.plan import Cell, Plan, Settings
from headcount.studies.points import require_cut
from headcount.studies.study import Study
from headcount.tasks.source import Source
from headcount.tasks.task import Task
from headcount.training.logging import Logging


@dataclass(frozen=True, kw_only=True)
class PruneRuns:
    """What all runs of a study have in common, by name: nothing is opened for it."""

    model: str | Run
    task: str | None = None
    like: Prune
    """The options that all of them share."""
    source: Source = field(default_factory=Source)
    model_options: ModelOptions = field(default_factory=ModelOptions)

    @classmethod
    def of(cls, subject: Subject, like: Prune) -> PruneRuns:
        """The runs of a subject that is open."""
        return cls(
            model=subject.name,
            task=None if subject.task is None else subject.task.name,
            like=like,
            source=subject.source,
            model_options=subject.model_options,
        )

    def plan(self, name: str, cells: Sequence[tuple[Mapping[str, Any], Prune, str]]) -> Plan:
        """The plan of these axes and options; the last of each is what a log adds to its name."""
        model = absolute(self.model, Path.cwd()) if isinstance(self.model, str) else self.model
        return Plan(
            path=Path(name),
            settings=Settings(name=name),
            data={},
            cells=[
                Cell(
                    group=name,
                    axes=axes,
                    label=label,
                    run=Run(
                        "prune",
                        model,
                        task=self.task,
                        source=self.source,
                        model_options=self.model_options,
                        options=options,
                        seed=axes["seed"],
                    ),
                )
                for axes, options, label in cells
            ],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PruneStudy:
    """A plan of prunes of one subject, and how it is carried out."""

    subject: Subject
    like: Prune
    """The options that all its runs share."""
    about: Mapping[str, Any]
    """What all its runs depend on."""
    plan: Plan
    out: str | Path | None = None
    overwrite: bool = False
    executor_options: ExecutorOptions = field(default_factory=ExecutorOptions)
    command: str | None = None
    progress: Progress | None = None
    note: Note = log
    logging: Logging = field(default_factory=Logging)

    def records(self) -> list[Record]:
        """The record of every run of the plan, in its order; those that are missing are made."""
        note = told_once(self.note)
        self._check(note)
        plan = self._plan()
        with _folder(self.out) as folder:
            study = Study(plan, folder, dict(self.about), self.command)
            if self.overwrite:
                study.discard([outcome.FILE])
            study.begin(self.executor_options, note)
            self._share_full(study, plan)
            where = folder.name if self.out is not None else self.subject.need_task().name
            result = study.run(
                self.executor_options,
                again="retry",
                note=note,
                progress=self.progress,
                subjects=self._subjects(plan),
                logging=_logging(self.logging, where),
            )
            if result.failed:
                raise _failure(study, result.failed)
            if result.left:
                raise StudyError(
                    f"{result.left} runs are left to {self.executor_options.executor}: the same "
                    "command again, when they are done, gathers them."
                )
            records = []
            for cell in plan.cells:
                path = study.ledger.folder_of(cell.key)
                records.append(load_record(path))
                require_cut(records[-1], path / FILE)
            return records

    def _check(self, note: Note) -> None:
        """Refuse wrong options of what costs nothing to prepare before anything is scored."""
        seen: set[str] = set()
        for cell in self.plan.cells:
            options = cell.run.options_as(Prune)
            prune = PruningRun(subject=self.subject, options=options, seed=cell.run.seed, note=note)
            if (method := content(options.method)) not in seen:
                seen.add(method)
                options.share  # noqa: B018
                if options.method.needs in ("nothing", "training"):
                    prune.prepare()
            prune.tell_seen()

    def _plan(self) -> Plan:
        """The plan, with the model named by its content where no other process can open it."""
        import torch

        settings = self.plan.settings
        if self.executor_options.executor == "serial":
            settings = replace(settings, threads=torch.get_num_threads())
        cells = self.plan.cells
        if not self.subject.named or not all(_is_plain(cell.run.options) for cell in cells):
            name = id_of(identity(self.subject, self.like))
            cells = [replace(cell, run=self._in_memory(cell.run, name)) for cell in cells]
        return replace(self.plan, cells=cells, settings=settings)

    def _in_memory(self, run: Run, fingerprint: str) -> Run:
        method = run.options_as(Prune).method
        if not _is_plain(method):  # calibration rows are in the fingerprint already
            fingerprint += f"-{content(method)}"
        return replace(run, model=InMemory(fingerprint, self.subject.name))

    def _subjects(self, plan: Plan) -> Subjects:
        """The opened subject, where the runs look for theirs."""
        subjects = Subjects()
        for run in (cell.run for cell in plan.cells):
            options = run.options_as(Prune)
            key = subject_key(run, trains=options.trains, seed=options.scoring.seed)
            subjects.held[key] = self.subject
        return subjects

    def _share_full(self, study: Study, plan: Plan) -> None:
        """Score the full model once for all runs in this process, or take what is there."""
        id = id_of(self.about)
        full = outcome.kept(study.folder, id)
        serial = self.executor_options.executor == "serial"
        if full is None and serial and not study.is_done():
            run = plan.cells[0].run
            prune = PruningRun(subject=self.subject, options=run.options_as(Prune), note=self.note)
            full = outcome.keep(prune.score_full(), study.folder, id)
        if full is not None:
            score = full
            for cell in plan.cells:
                key = full_key(self.subject, cell.run.options_as(Prune))
                self.subject.once(key, lambda: score)


def open_study(
    model: Subject | PreTrainedModel | str,
    task: Task | str | None,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    trains: bool = False,
    seed: int = 0,
) -> Subject:
    """The subject of a study: nobody changes its model while the study runs.

    `seed` is that of a new task head, which is scoring's, as where a run opens it by its name.
    """
    subject = make_subject(model, task, tokenizer=tokenizer, trains=trains, seed=seed)
    return replace(subject, by_name=True, prepared={}, _made={})


def told_once(note: Note) -> Note:
    """A note that differs from an earlier one in numbers alone is not given again."""
    given: set[str] = set()

    def give(text: str) -> None:
        kind = re.sub(r"[0-9.,]+", "#", text)
        if kind not in given:
            given.add(kind)
            note(text)

    return give


@contextmanager
def _folder(out: str | Path | None) -> Generator[Path]:
    """The folder of a study, held while it is worked on; a temporary one where none is asked."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="headcount-") as folder:
            yield Path(folder)
        return
    folder = expanded(out)
    with locked(folder):
        yield folder


def _is_plain(options: object) -> bool:
    """Whether options can be written down, and so be read by another process."""
    try:
        json.dumps(to_plain(options))
    except (TypeError, ValueError):
        return False
    return True


def _logging(logging: Logging, where: str) -> dict[str, Any]:
    return to_plain(logging.named(where)) if logging else {}


def _failure(study: Study, failed: Mapping[str, str]) -> HeadcountError:
    """What to raise where runs failed: the first reason, with its exit code."""
    key, text = next(iter(failed.items()))
    failure = study.ledger.state(key).failure or {}
    kind = UsageError if failure.get("exit_code") == 2 else StudyError
    return kind(f"{text} ({len(failed)} runs failed.)" if len(failed) > 1 else text)


def check_seeds(what: str, seeds: int) -> None:
    """Refuse a study without a seed."""
    if seeds < 1:
        raise UsageError(f"{what} needs at least one seed, not {seeds}.")


def check_labels(labels: Sequence[str]) -> None:
    """Refuse a method that is named twice."""
    if len(set(labels)) < len(labels):
        raise UsageError("A method is named twice.")
