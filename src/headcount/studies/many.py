"""Many cuts of one subject: a curve, a comparison or a sweep is a list of runs and a summary.

What is done is found in the store; cuts without a repair are scored together, many masks in one
pass over the rows, and between two passes a study can stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from headcount.base.errors import UsageError
from headcount.learned.keeper import AllClosedError
from headcount.repair.repairs import repairs_identity
from headcount.runs.cutting import PruningRun
from headcount.runs.folder import work_of, workspace
from headcount.runs.identity import own_options
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import Note, rows_sentence
from headcount.runs.prune import run_of
from headcount.runs.record import Record, id_of
from headcount.runs.subject import Subject
from headcount.runs.values import content
from headcount.studies.points import Point
from headcount.studies.store import Store
from headcount.training.evaluation import Evaluation
from headcount.training.logging import Logging
from headcount.training.tracker import log_run

TOGETHER = 32
"""Masks scored in one pass over the data."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class StudyCell:
    """One cut that a study asks for, and what its table calls it."""

    label: str
    asked: Prune
    seed: int
    value: float | None = None
    """Of the option that is varied, in a sweep."""


@dataclass(kw_only=True)
class SubjectStudy:
    """A study under way."""

    subject: Subject
    store: Store
    about: Mapping[str, Any]
    """What all its runs depend on."""
    note: Note
    progress: Progress | None = None
    logging: Logging = field(default_factory=Logging)
    """Which trackers are told of every run that is finished, and of its training."""
    may_close: bool = False
    """All gates closing is a result, not a failure."""

    def __post_init__(self) -> None:
        self.prepared: dict[Any, Any] = {}
        self.told: set[str] = set()

    def cutting(self, wanted: StudyCell) -> PruningRun:
        """One of its cuts."""
        return PruningRun(
            subject=self.subject, options=wanted.asked, seed=wanted.seed, note=self.note,
            told=self.told, prepared=self.prepared, logging=self._logging(wanted),
        )  # fmt: skip

    def check(self, wanted: Sequence[StudyCell]) -> None:
        """Wrong options of what costs nothing to prepare are told before anything is scored."""
        for first in {content(each.asked.method): each for each in wanted}.values():
            first.asked.share  # noqa: B018
            if first.asked.method.needs in ("nothing", "training"):
                self.cutting(first).prepare()
        for each in wanted:
            self.cutting(each).tell_seen()

    def full(self, like: StudyCell) -> Evaluation:
        """The model with all its heads; trained first where its task head is new."""
        found = self.store.full()
        return found or self.store.keep_full(self.cutting(like).score_full())

    def points(self, wanted: Sequence[StudyCell]) -> list[Point]:
        """Every cut as a row, those that are missing made first, in this order."""
        before = self.full(wanted[0])
        ids = [id_of(self.identity_of(self.cutting(each))) for each in wanted]
        missing = [each for each, id in zip(wanted, ids, strict=True) if self.store.get(id) is None]
        done = len(wanted) - len(missing)
        self._report(done, len(wanted))
        while missing:
            part = _together(missing)
            missing = missing[len(part) :]
            for each, record in zip(part, self._make(part, before), strict=True):
                self.store.add(record)
                self._log(each, record)
            done += len(part)
            self._report(done, len(wanted))
        pairs = zip(wanted, ids, strict=True)
        return [Point.of(self.store.done[id], each.label, each.value) for each, id in pairs]

    def _logging(self, wanted: StudyCell) -> Logging:
        """A run of every cut: what tells it from the others is its name."""
        what = wanted.asked.ratio if wanted.value is None else f"{wanted.value:g}"
        folder = self.store.folder
        where = self.about.get("task") if folder is None else folder.name
        return self.logging.named(where, wanted.label, what)

    def _log(self, wanted: StudyCell, record: Record) -> None:
        row = Point.of(record, wanted.label, wanted.value)
        asked = {"method": row.method, "ratio": row.ratio, "seed": row.seed, "value": row.value}
        asked |= {name: self.about.get(name) for name in ("model", "task", "split", "metric")}
        numbers = {
            "score": row.score, "difference": row.difference, "kept": row.kept,
            "sparsity": row.sparsity,
        }  # fmt: skip
        log_run(self._logging(wanted).named("seed", wanted.seed, "scored"), asked, numbers)

    def _report(self, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(done, total)

    def _make(self, part: Sequence[StudyCell], before: Evaluation) -> list[Record]:
        started = time.monotonic()
        if not part[0].asked.gated:
            return [self._one(each, before) for each in part]
        cuts = [self.cutting(wanted) for wanted in part]
        decided = [cutting.decide() for cutting in cuts]
        masks = [decision.mask for decision in decided]
        scored = cuts[0].score_masks(masks, [cutting.seed for cutting in cuts])
        seconds = (time.monotonic() - started) / len(part)
        return [
            self.record_of(cutting, cutting.result(decision, {}, before, after), seconds)
            for cutting, decision, after in zip(cuts, decided, scored, strict=True)
        ]

    def _one(self, wanted: StudyCell, before: Evaluation) -> Record:
        """One cut with its training and score, or what is left when all gates close."""
        started = time.monotonic()
        with self.working(self.cutting(wanted)) as cutting:
            try:
                decision = cutting.decide()
                small, done = cutting.cut(decision)
                result = cutting.result(decision, done, before, cutting.score(small))
            except AllClosedError as error:
                if not self.may_close:
                    raise
                result = cutting.closed(error, before)
            record = self.record_of(cutting, result, time.monotonic() - started)
            return self.store.add(record)

    @contextmanager
    def working(self, cutting: PruningRun) -> Generator[PruningRun]:
        """The cut with a folder that it can be resumed from, where there is training to resume."""
        asked, about = cutting.options, self.identity_of(cutting)
        target = self.store.folder_of(id_of(about))
        trains = [step for step in asked.repair if step.needs == "training"]
        if target is None or (not trains and asked.method.needs != "training"):
            yield cutting
            return
        with workspace(work_of(target), about, self.note, where=target):
            yield replace(cutting, work=work_of(target))

    def record_of(self, cutting: PruningRun, result: Any, seconds: float) -> Record:
        """A finished cut."""
        return Record(
            run=run_of(self.subject, cutting.options, cutting.seed),
            identity=self.identity_of(cutting), rows=cutting.used,
            result=result | {"rows_said": rows_sentence(cutting.used)},
            notes=cutting.notes(), seconds=round(seconds, 1),
        )  # fmt: skip

    def identity_of(self, cutting: PruningRun) -> dict[str, Any]:
        """What one of its cuts depends on."""
        asked = cutting.options
        own = {"method": asked.name, "ratio": asked.ratio, "cut_seed": cutting.seed}
        own |= {**repairs_identity(asked.repair), **own_options(asked.method)}
        return dict(self.about) | own


def _together(missing: Sequence[StudyCell]) -> Sequence[StudyCell]:
    """The cuts at the front that are scored in one pass: of one method, without a repair."""
    first = missing[0].asked
    if not first.gated:
        return missing[:1]
    same = 0
    for wanted in missing[:TOGETHER]:
        if not wanted.asked.gated or wanted.asked.method is not first.method:
            break
        same += 1
    return missing[:same]


def check_seeds(what: str, seeds: int) -> None:
    """Refuse a study without a seed."""
    if seeds < 1:
        raise UsageError(f"{what} needs at least one seed, not {seeds}.")


def check_labels(labels: Sequence[str]) -> None:
    """Refuse a method that is named twice."""
    if len(set(labels)) < len(labels):
        raise UsageError("A method is named twice.")
