"""Pruned models that a search tries: which heads go, what each depends on, and its record."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from headcount.repair.repairs import repairs_identity
from headcount.runs.cutting import PruningRun
from headcount.runs.folder import work_of, workspace
from headcount.runs.identity import own_options
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import Note
from headcount.runs.prune import run_of
from headcount.runs.prune_result import PruneResult
from headcount.runs.record import Record, id_of
from headcount.runs.subject import Subject
from headcount.runs.values import content
from headcount.studies.search.store import Store
from headcount.training.evaluation import Evaluation


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One prune that a search may try, and what its table calls it."""

    label: str
    options: Prune
    seed: int


@dataclass(kw_only=True)
class Candidates:
    """The prunes of one search: what a method has measured serves all of them."""

    subject: Subject
    store: Store
    about: Mapping[str, Any]
    """What all of them depend on."""
    note: Note
    prepared: dict[Any, Any] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    """Kinds of notes that were given: one of each is enough."""

    def pruning(self, candidate: Candidate) -> PruningRun:
        """One of them, to be made."""
        return PruningRun(
            subject=self.subject,
            options=candidate.options,
            seed=candidate.seed,
            note=self.note,
            noted=self.given,
            prepared=self.prepared,
        )

    def check(self, candidates: Sequence[Candidate]) -> None:
        """Refuse wrong options of what costs nothing to prepare before anything is scored."""
        for first in {content(one.options.method): one for one in candidates}.values():
            first.options.share  # noqa: B018
            if first.options.method.needs in ("nothing", "training"):
                self.pruning(first).prepare()
        for candidate in candidates:
            self.pruning(candidate).tell_seen()

    def full(self, candidate: Candidate) -> Evaluation:
        """The model with all its heads; trained first where its task head is new."""
        full = self.store.full()
        return full or self.store.keep_full(self.pruning(candidate).score_full())

    @contextmanager
    def working(self, pruning: PruningRun) -> Generator[PruningRun]:
        """A prune with a folder that it can be resumed from, where there is training to resume."""
        options, about = pruning.options, self.identity_of(pruning)
        target = self.store.folder_of(id_of(about))
        if target is None or not (options.trains or options.method.needs == "training"):
            yield pruning
            return
        with workspace(work_of(target), about, self.note, where=target):
            yield replace(pruning, work=work_of(target))

    def record_of(self, pruning: PruningRun, result: PruneResult, seconds: float) -> Record:
        """A finished prune."""
        return Record(
            run=run_of(self.subject, pruning.options, pruning.seed),
            identity=self.identity_of(pruning),
            rows=pruning.used,
            result=result,
            notes=pruning.notes(),
            seconds=round(seconds, 1),
        )

    def identity_of(self, pruning: PruningRun) -> dict[str, Any]:
        """What one of them depends on."""
        options = pruning.options
        return {
            **self.about,
            "method": options.name,
            "ratio": options.ratio,
            "cut_seed": pruning.seed,
            **repairs_identity(options.repair),
            **own_options(options.method),
        }
