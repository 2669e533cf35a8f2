"""A study of prunes under way: its folder is held, and plans are executed there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.base.errors import HeadcountError, StudyError, UsageError
from headcount.base.options import to_plain
from headcount.runs.cutting import PruningRun, full_key
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import Note
from headcount.runs.record import FILE, Record, id_of, load_record
from headcount.studies import outcome
from headcount.studies.executors.protocol import Executor, make_executor
from headcount.studies.ledger import Ledger
from headcount.studies.plan import Plan
from headcount.studies.points import require_cut
from headcount.studies.study import Study
from headcount.training.evaluation import Evaluation
from headcount.training.logging import Logging

if TYPE_CHECKING:
    from headcount.studies.prunes import PruneStudy


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredRun:
    """A finished prune, with what the pruned model predicts row by row."""

    key: str
    """The name of its folder."""
    record: Record
    evaluation: Evaluation


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenStudy:
    """A study of prunes whose folder is held: plans are executed there, one after the other."""

    of: PruneStudy
    folder: Path
    note: Note
    _executors: list[Executor] = field(default_factory=list)
    """The executor, once there is one: its processes serve all plans."""

    def __enter__(self) -> OpenStudy:
        return self

    def __exit__(self, *_: object) -> None:
        for executor in self._executors:
            executor.close()

    @property
    def _first(self) -> Prune:
        return self.of.plan.cells[0].run.options_as(Prune)

    @property
    def id(self) -> str:
        """Of the request that all files of the study belong to."""
        return id_of(self.of.about)

    def records(self, plan: Plan) -> list[Record]:
        """The record of every run of a plan, in its order; those that are missing are made."""
        plan, options = self.of.prepared(plan), self.of.executor_options
        study = Study(plan, self.folder, dict(self.of.about), self.of.command)
        study.begin(options, self.note)
        self._share_full(study)
        if not self._executors:
            self._executors.append(make_executor(self.folder, options, plan.settings.threads))
        of = self.of
        where = self.folder.name if of.out is not None else of.subject.need_task().name
        result = study.run(
            options,
            again="retry",
            note=self.note,
            progress=of.progress,
            subjects=of.subjects(plan),
            logging=_logging(of.logging, where),
            executor=self._executors[0],
        )
        if result.failed:
            raise _failure(study, result.failed)
        if result.left:
            raise StudyError(
                f"{result.left} runs are left to {options.executor}: the same command again, when "
                "they are done, gathers them."
            )
        records = []
        for cell in plan.cells:
            path = study.ledger.folder_of(cell.key)
            records.append(load_record(path))
            require_cut(records[-1], path / FILE)
        return records

    def scored(self, plan: Plan) -> list[ScoredRun]:
        """As `records`, with what every pruned model predicts row by row.

        A run without predictions, which several processes made together, is made again.
        """
        cells = self.of.prepared(plan).cells
        ledger = Ledger(self.folder)
        for cell in cells:
            path = ledger.folder_of(cell.key)
            if path.is_dir() and not (path / outcome.PREDICTIONS).exists():
                aside = ledger.put_aside(cell.key)
                self.note(f"A run has no predictions and is made again; it is now in {aside}.")
        runs = []
        for cell, record in zip(cells, self.records(plan), strict=True):
            path = ledger.folder_of(cell.key)
            evaluation = outcome.kept(path, cell.key, outcome.PREDICTIONS)
            if evaluation is None:
                raise StudyError(f"{path} has no predictions, and a search needs them.")
            runs.append(ScoredRun(key=cell.key, record=record, evaluation=evaluation))
        return runs

    def full(self) -> Evaluation:
        """The full model on the rows that all runs share: scored once, and kept."""
        full = outcome.kept(self.folder, self.id, self.of.full_file)
        if full is None:
            prune = PruningRun(subject=self.of.subject, options=self._first, note=self.note)
            full = outcome.keep(prune.score_full(), self.folder, self.id, self.of.full_file)
        return full

    def _share_full(self, study: Study) -> None:
        """Score the full model once for all runs in this process, or take what is there."""
        serial = self.of.executor_options.executor == "serial"
        if not (serial and not study.is_done()) and not (self.folder / self.of.full_file).exists():
            return
        full, subject = self.full(), self.of.subject
        for cell in study.planned.cells:
            options = cell.run.options_as(Prune)
            if options.scoring == self._first.scoring:
                subject.once(full_key(subject, options), lambda: full)


def _logging(logging: Logging, where: str) -> dict[str, Any]:
    return to_plain(logging.named(where)) if logging else {}


def _failure(study: Study, failed: Mapping[str, str]) -> HeadcountError:
    """What to raise where runs failed: the first reason, with its exit code."""
    key, text = next(iter(failed.items()))
    failure = study.ledger.state(key).failure or {}
    kind = UsageError if failure.get("exit_code") == 2 else StudyError
    return kind(f"{text} ({len(failed)} runs failed.)" if len(failed) > 1 else text)
