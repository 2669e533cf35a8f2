"""Pruned models of a search, scored on no more rows than their judgement needs.

Every one is a run of the ledger, on a sample of the selection set or on all of it: a smaller sample
is a part of a larger one. So a curve on the same rows has made some of them already, any executor
makes them, and a killed search finds what it had made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from headcount.runs.cutting import PruningRun
from headcount.runs.kinds.prune import Prune
from headcount.runs.run import Run
from headcount.studies.opened import OpenStudy, ScoredRun
from headcount.studies.plan import Plan
from headcount.studies.prunes import plan_prunes
from headcount.studies.search.pace import Pace
from headcount.tasks.rows import ScoredRows
from headcount.training.evaluation import Evaluation
from headcount.training.scoring import Scoring


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One prune that a search may try, and what its table calls it."""

    label: str
    options: Prune
    seed: int


def candidate_plan(like: Run, *candidates: Candidate) -> Plan:
    """The runs of some candidates."""
    cells = [
        ({"method": one.label, "seed": one.seed}, one.options, one.label) for one in candidates
    ]
    return plan_prunes(like, "search", cells)


@dataclass(kw_only=True)
class Trials:
    """Every prune that a search has tried."""

    study: OpenStudy
    like: Run
    """What its prunes have in common."""
    first_rows: int
    report: Callable[[str], None]
    pace: Pace | None = None
    """How far the search is, where that is told."""

    def __post_init__(self) -> None:
        self._done: dict[tuple[object, ...], ScoredRun] = {}

    @property
    def scoring(self) -> Scoring:
        """The selection set."""
        return self.like.options_as(Prune).scoring

    @cached_property
    def rows(self) -> ScoredRows:
        """The selection set, all of it."""
        return self.study.of.subject.scored(self.scoring)

    @cached_property
    def stages(self) -> list[int]:
        """Numbers of rows that a prune is judged on, one after the other; the last is all."""
        counts = [min(self.first_rows, len(self.rows))]
        while counts[-1] < len(self.rows):
            counts.append(min(2 * counts[-1], len(self.rows)))
        return counts

    @cached_property
    def full(self) -> Evaluation:
        """All heads on the whole selection set."""
        return self.study.full()

    def before(self, candidate: Candidate, count: int) -> Evaluation:
        """All heads on so many rows."""
        if count == len(self.rows):
            return self.full
        options = self._at(candidate, count).options
        return PruningRun(subject=self.study.of.subject, options=options).score_full()

    def after(self, candidate: Candidate, count: int) -> Evaluation:
        """A candidate on so many rows."""
        return self.run(candidate, count).evaluation

    def _at(self, candidate: Candidate, count: int) -> Candidate:
        """A candidate that is scored on so many rows."""
        if count == len(self.rows):
            return candidate
        scoring = replace(self.scoring, limit=count)
        return replace(candidate, options=replace(candidate.options, scoring=scoring))

    def run(self, candidate: Candidate, count: int) -> ScoredRun:
        """The run of a candidate on so many rows, made where it was not yet."""
        if self.pace is not None:
            self.pace.step((candidate.label, candidate.options.ratio), candidate.seed)
        key = candidate.label, candidate.options.ratio, candidate.seed, count
        if key not in self._done:
            ratio, layout = candidate.options.ratio, self.study.of.subject.layout
            kept = f"{layout.kept_at(ratio)} of " if isinstance(ratio, float) else ""
            where = "" if self.pace is None else f", {self.pace}"
            self.report(
                f"{candidate.label}, seed {candidate.seed}: trying {kept}{len(layout)} heads{where}"
            )
            plan = candidate_plan(self.like, self._at(candidate, count))
            (self._done[key],) = self.study.scored(plan)
            if self.pace is not None:
                self.pace.spent[self._done[key].key] = self._done[key].record.seconds
        return self._done[key]
