"""Curves, comparisons and sweeps: a plan of prunes of one subject, driven, and read back.

Every prune is a run of the ledger in the study's folder: any executor carries it out, a study file
that asks for the same finds it there, and the same call again computes what is missing.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.base.files import expanded, locked
from headcount.base.options import to_plain
from headcount.runs.cutting import PruningRun
from headcount.runs.identity import identity, require_same
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import Note, log
from headcount.runs.opening import subject_key
from headcount.runs.record import Record, id_of
from headcount.runs.run import InMemory, Run
from headcount.runs.subject import Subject, Subjects, make_subject
from headcount.runs.values import content
from headcount.studies import outcome
from headcount.studies.driver import Progress
from headcount.studies.executors.protocol import ExecutorOptions
from headcount.studies.opened import OpenStudy
from headcount.studies.parts import absolute
from headcount.studies.plan import Cell, Plan, Settings
from headcount.studies.points import Point, require_scores
from headcount.studies.study import Study
from headcount.tasks.task import Task
from headcount.training.logging import Logging

PruneCell = tuple[Mapping[str, Any], Prune, str]
"""Axes, options, and what a log adds to its name."""


def plan_prunes(like: Run, name: str, cells: Iterable[PruneCell]) -> Plan:
    """The plan of runs like one but for their axes and options."""
    if isinstance(like.model, str):
        like = replace(like, model=absolute(like.model, Path.cwd()))
    planned = []
    for axes, options, label in cells:
        run = replace(like, options=options, seed=axes["seed"])
        planned.append(Cell(group=name, axes=axes, run=run, label=label))
    return Plan(path=Path(name), settings=Settings(name=name), cells=planned, data={})


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
    grows: bool = False
    """Its runs are chosen as results come in: none of the plan is sure to be made."""
    full_file: str = outcome.FILE
    """Where the full model's predictions are kept."""

    def records(self) -> list[Record]:
        """The record of every run of the plan, in its order; those that are missing are made."""
        with self.opened() as study:
            return study.records(self.plan)

    def points(self, over: str | None = None) -> tuple[dict[str, Any], list[Point]]:
        """The full model, scored, and every run as a point: seeds of the same side by side.

        `over` is the axis of the value that is varied.
        """
        records, groups = self.records(), dict[tuple[object, ...], list[Point]]()
        for cell, record in zip(self.plan.cells, records, strict=True):
            name = str(cell.axes.get("method", self.like.name))
            point = Point.of(record, name, None if over is None else cell.axes[over])
            others = tuple(value for axis, value in cell.axes.items() if axis != "seed")
            groups.setdefault(others, []).append(point)
        full = require_scores(records[0]).before.to_json()
        return full, [point for points in groups.values() for point in points]

    @contextmanager
    def opened(self, results: Sequence[str] = ()) -> Generator[OpenStudy]:
        """The study with its folder held; `results` is what `overwrite` deletes beside the runs."""
        note = told_once(self.note)
        self._check(note)
        with _folder(self.out) as folder:
            plan = replace(self.plan, cells=()) if self.grows else self.plan
            study = Study(self.prepared(plan), folder, dict(self.about), self.command)
            results = (*results, self.full_file)
            if self.overwrite:
                study.discard(results, known=outcome.is_one(folder / self.full_file))
            elif (
                study.is_new
                and any(os.path.lexists(folder / name) for name in results)
                and outcome.kept(folder, id_of(self.about), self.full_file) is None
            ):
                require_same(None, self.about, folder)
            study.begin(self.executor_options, note)
            with OpenStudy(of=self, folder=folder, note=note) as opened:
                yield opened

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

    def prepared(self, plan: Plan) -> Plan:
        """A plan, with the model named by its content where no other process can open it."""
        import torch

        settings = plan.settings
        if self.executor_options.executor == "serial":
            settings = replace(settings, threads=torch.get_num_threads())
        cells = plan.cells
        if not self.subject.named or not all(_is_plain(cell.run.options) for cell in cells):
            name = id_of(identity(self.subject, self.like))
            cells = [replace(cell, run=self._in_memory(cell.run, name)) for cell in cells]
        return replace(plan, cells=cells, settings=settings)

    def _in_memory(self, run: Run, fingerprint: str) -> Run:
        method = run.options_as(Prune).method
        if not _is_plain(method):  # calibration rows are in the fingerprint already
            fingerprint += f"-{content(method)}"
        if self.subject.fresh:
            fingerprint += f"-head {run.seed}"
        return replace(run, model=InMemory(fingerprint, self.subject.name))

    def subjects(self, plan: Plan) -> Subjects:
        """The opened subject, where the runs look for theirs; a new task head is each seed's."""
        subjects = Subjects()
        for run in (cell.run for cell in plan.cells):
            key = subject_key(run, trains=run.options_as(Prune).trains)
            subjects.held[key] = partial(self.subject.with_head, run.seed)
        return subjects


def open_study(
    model: Subject | PreTrainedModel | str,
    task: Task | str | None,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    trains: bool = False,
    seed: int = 0,
) -> Subject:
    """The subject of a study: nobody changes its model while the study runs.

    `seed` is that of a new task head: of the first run, whose subject this is.
    """
    subject = make_subject(model, task, tokenizer=tokenizer, trains=trains, seed=seed).with_head(
        seed
    )
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


def check_seeds(what: str, seeds: int) -> None:
    """Refuse a study without a seed."""
    if seeds < 1:
        raise UsageError(f"{what} needs at least one seed, not {seeds}.")


def check_labels(labels: Sequence[str]) -> None:
    """Refuse a method that is named twice."""
    if len(set(labels)) < len(labels):
        raise UsageError("A method is named twice.")
