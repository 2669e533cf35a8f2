"""Cuts of a search, scored on no more rows than their judgement needs.

The selection set has one drawn order. A pruned model is scored on its first rows, then on more,
and its predictions are kept: nothing is scored twice, not after a kill either.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from headcount.pruning.methods import Decision
from headcount.runs.cutting import PruningRun
from headcount.runs.prune_result import RepairStep
from headcount.runs.record import id_of
from headcount.studies import outcome
from headcount.studies.search.candidates import Candidate, Candidates
from headcount.studies.search.pace import Pace
from headcount.tasks.metrics import Outcome, score
from headcount.tasks.rows import ScoredRows
from headcount.training.evaluate import evaluate_rows
from headcount.training.evaluation import Evaluation
from headcount.training.scoring import Scoring

PREDICTIONS = "predictions.json"
"""What a pruned model predicts row by row, beside its record."""


@dataclass(frozen=True, eq=False)
class _Made:
    """A cut that is in memory, ready to be scored on more rows."""

    id: str
    cutting: PruningRun
    decision: Decision
    model: PreTrainedModel
    repair: tuple[RepairStep, ...]


@dataclass(kw_only=True)
class Trials:
    """Every cut that a search has tried."""

    study: Candidates
    scoring: Scoring
    """The selection set."""
    first_rows: int
    report: Callable[[str], None]
    pace: Pace | None = None
    """How far the search is, where that is told."""

    def __post_init__(self) -> None:
        self._said: dict[str, Evaluation] = {}
        self._made: _Made | None = None

    @cached_property
    def rows(self) -> ScoredRows:
        """The selection set, all of it."""
        return self.study.subject.scored(self.scoring)

    @cached_property
    def order(self) -> np.ndarray:
        """(row,) the order in which rows are used: the first of them are a sample of all."""
        return np.random.default_rng((self.scoring.seed, 2)).permutation(len(self.rows))

    @cached_property
    def stages(self) -> list[int]:
        """Numbers of rows that a cut is judged on, one after the other; the last is all."""
        evaluation = [min(self.first_rows, len(self.rows))]
        while evaluation[-1] < len(self.rows):
            evaluation.append(min(2 * evaluation[-1], len(self.rows)))
        return evaluation

    def id_of(self, wanted: Candidate) -> str:
        """The short name of a cut."""
        return id_of(self.study.identity_of(self.study.pruning(wanted)))

    def before(self, wanted: Candidate, count: int) -> Evaluation:
        """All heads on the first rows."""
        full = self.study.full(wanted)
        assert full.outcome is not None
        numbers = self.order[:count]
        scores, right = (_take(side, numbers) for side in _sides(full.outcome))
        return self._evaluation(full, Outcome(scores, right))

    def after(self, wanted: Candidate, count: int) -> Evaluation:
        """A cut on the first rows, scored where it was not yet."""
        id = self.id_of(wanted)
        if self.pace is not None:
            self.pace.step((wanted.label, wanted.options.ratio), wanted.seed)
        scores = self._said.get(id) or self._kept(id)
        while scores is None or scores.n < count:
            start = 0 if scores is None else scores.n
            stop = next(stage for stage in self.stages if stage > start)
            scores = self._score(wanted, id, scores, self.order[start:stop])
        self._said[id] = scores
        if scores.n == count:
            return scores
        assert scores.outcome is not None
        first = (_take(side, np.arange(count)) for side in _sides(scores.outcome))
        return self._evaluation(scores, Outcome(*first))

    def _kept(self, id: str) -> Evaluation | None:
        """What an earlier call wrote, where its record is there, too."""
        if self.study.store.get(id) is None:
            return None
        return outcome.kept(self.study.store.folder_of(id), id, PREDICTIONS)

    def _score(
        self, wanted: Candidate, id: str, scores: Evaluation | None, numbers: np.ndarray
    ) -> Evaluation:
        """So many rows more, kept with the record of the cut."""
        started = time.monotonic()
        subject, store = self.study.subject, self.study.store
        earlier = store.get(id)
        with self.study.working(self.study.pruning(wanted)) as cutting:
            candidate_model = self._make(cutting, wanted, id)
            masks = [candidate_model.decision.mask] if wanted.options.gated else None
            (piece,) = evaluate_rows(
                candidate_model.model,
                self.rows.take(numbers),
                masks,
                tokenizer=subject.tokenizer,
                scoring=self.scoring,
            )
            assert piece.outcome is not None
            together = piece.outcome
            if scores is not None and scores.outcome is not None:
                pairs = zip(_sides(scores.outcome), _sides(together), strict=True)
                together = Outcome(*(_joined(one, other) for one, other in pairs))
            evaluation = self._evaluation(piece, _plain(together))
            before = self.before(wanted, evaluation.n)
            result = candidate_model.cutting.result(
                candidate_model.decision, before, evaluation, candidate_model.repair
            )
            spent = 0.0 if earlier is None else earlier.seconds
            seconds = spent + time.monotonic() - started
            if self.pace is not None:
                self.pace.spent[id] = seconds
            # the record first: what was said is only taken where there is one
            store.add(self.study.record_of(candidate_model.cutting, result, seconds))
            where = store.folder_of(id)
            outcome.keep(evaluation, where, id, PREDICTIONS)
        return evaluation

    def _make(self, cutting: PruningRun, wanted: Candidate, id: str) -> _Made:
        """The cut itself; the last one is still there."""
        if self._made is not None and self._made.id == id:
            return self._made
        self._made = None  # two models in memory are enough
        decision = cutting.decide()
        heads = f"{len(decision.mask)} of {len(decision.mask.layout)} heads"
        where = "" if self.pace is None else f", {self.pace}"
        self.report(f"{wanted.label}, seed {wanted.seed}: trying {heads}{where}")
        model, repair = self.study.subject.model, ()
        if not wanted.options.gated:
            model, repair = cutting.cut(decision)
        self._made = _Made(id, cutting, decision, model, repair)
        return self._made

    def _evaluation(self, like: Evaluation, answers: Outcome) -> Evaluation:
        """The scores of an outcome over the first rows."""
        options = {"bootstrap": self.scoring.bootstrap, "seed": self.scoring.seed}
        scores = tuple(score(one.metric, answers, **options) for one in like.scores)
        return replace(
            like,
            scores=scores,
            n=len(answers),
            outcome=answers,
            predictions={},
            mask=None,
            rows=self._name(len(answers)),
        )

    def _name(self, count: int) -> str:
        return self.rows.take(self.order[:count]).fingerprint


def _sides(scores: Outcome) -> tuple[Any, Any]:
    return scores.predictions, scores.labels


def _take(side: Any, numbers: np.ndarray) -> Any:
    return side[numbers] if isinstance(side, np.ndarray) else [side[i] for i in numbers]


def _joined(one: Any, other: Any) -> Any:
    return np.concatenate([one, other]) if isinstance(one, np.ndarray) else [*one, *other]


def _plain(scores: Outcome) -> Outcome:
    """As a file gives it back: numbers in double precision."""
    sides = [
        side.astype(np.float64) if isinstance(side, np.ndarray) and side.dtype.kind == "f" else side
        for side in _sides(scores)
    ]
    return Outcome(*sides)
