"""Cuts of a search, scored on no more rows than their judgement needs.

The rows that choose have one drawn order. A cut is scored on the first of them, then on more, and
what it said of each is kept: nothing is scored twice, not after a kill either.
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
from headcount.runs.record import id_of
from headcount.studies import outcome
from headcount.studies.many import StudyCell, SubjectStudy
from headcount.studies.pace import Pace
from headcount.tasks.metrics import Outcome, score
from headcount.tasks.rows import ScoredRows
from headcount.training.evaluate import evaluate_rows
from headcount.training.evaluation import Evaluation
from headcount.training.scoring import Scoring

SAID = "said.json"
"""What a cut said row by row, beside its record."""


@dataclass(frozen=True, eq=False)
class _Made:
    """A cut that is in memory, ready to be scored on more rows."""

    id: str
    cutting: PruningRun
    decision: Decision
    model: PreTrainedModel
    done: dict[str, Any]


@dataclass(kw_only=True)
class Trials:
    """Every cut that a search has tried."""

    study: SubjectStudy
    scoring: Scoring
    """The rows that choose."""
    first_rows: int
    report: Callable[[str], None]
    pace: Pace | None = None
    """How far the search is, where that is told."""

    def __post_init__(self) -> None:
        self._said: dict[str, Evaluation] = {}
        self._made: _Made | None = None

    @cached_property
    def rows(self) -> ScoredRows:
        """The rows that choose, all of them."""
        return self.study.subject.scored(self.scoring)

    @cached_property
    def order(self) -> np.ndarray:
        """(row,) the order in which rows are used: the first of them are a sample of all."""
        return np.random.default_rng((self.scoring.seed, 2)).permutation(len(self.rows))

    @cached_property
    def stages(self) -> list[int]:
        """Numbers of rows that a cut is judged on, one after the other; the last is all."""
        found = [min(self.first_rows, len(self.rows))]
        while found[-1] < len(self.rows):
            found.append(min(2 * found[-1], len(self.rows)))
        return found

    def id_of(self, wanted: StudyCell) -> str:
        """The short name of a cut."""
        return id_of(self.study.identity_of(self.study.cutting(wanted)))

    def before(self, wanted: StudyCell, count: int) -> Evaluation:
        """All heads on the first rows."""
        full = self.study.full(wanted)
        assert full.outcome is not None
        numbers = self.order[:count]
        said, right = (_take(side, numbers) for side in _sides(full.outcome))
        return self._evaluation(full, Outcome(said, right))

    def after(self, wanted: StudyCell, count: int) -> Evaluation:
        """A cut on the first rows, scored where it was not yet."""
        id = self.id_of(wanted)
        if self.pace is not None:
            self.pace.step((wanted.label, wanted.asked.ratio), wanted.seed)
        said = self._said.get(id) or self._kept(id)
        while said is None or said.n < count:
            start = 0 if said is None else said.n
            stop = next(stage for stage in self.stages if stage > start)
            said = self._score(wanted, id, said, self.order[start:stop])
        self._said[id] = said
        if said.n == count:
            return said
        assert said.outcome is not None
        first = (_take(side, np.arange(count)) for side in _sides(said.outcome))
        return self._evaluation(said, Outcome(*first))

    def _kept(self, id: str) -> Evaluation | None:
        """What an earlier call wrote, where its record is there, too."""
        if self.study.store.get(id) is None:
            return None
        return outcome.kept(self.study.store.folder_of(id), id, SAID)

    def _score(
        self, wanted: StudyCell, id: str, said: Evaluation | None, numbers: np.ndarray
    ) -> Evaluation:
        """So many rows more, kept with the record of the cut."""
        started = time.monotonic()
        subject, store = self.study.subject, self.study.store
        earlier = store.get(id)
        with self.study.working(self.study.cutting(wanted)) as cutting:
            made = self._make(cutting, wanted, id)
            masks = [made.decision.mask] if wanted.asked.gated else None
            (piece,) = evaluate_rows(
                made.model, self.rows.take(numbers), masks, tokenizer=subject.tokenizer,
                scoring=self.scoring,
            )  # fmt: skip
            assert piece.outcome is not None
            together = piece.outcome
            if said is not None and said.outcome is not None:
                pairs = zip(_sides(said.outcome), _sides(together), strict=True)
                together = Outcome(*(_joined(one, other) for one, other in pairs))
            found = self._evaluation(piece, _plain(together))
            before = self.before(wanted, found.n)
            result = made.cutting.result(made.decision, made.done, before, found)
            spent = 0.0 if earlier is None else earlier.seconds
            seconds = spent + time.monotonic() - started
            if self.pace is not None:
                self.pace.spent[id] = seconds
            # the record first: what was said is only taken where there is one
            store.add(self.study.record_of(made.cutting, result, seconds))
            where = store.folder_of(id)
            outcome.keep(found, where, id, SAID)
        return found

    def _make(self, cutting: PruningRun, wanted: StudyCell, id: str) -> _Made:
        """The cut itself; the last one is still there."""
        if self._made is not None and self._made.id == id:
            return self._made
        self._made = None  # two models in memory are enough
        decision = cutting.decide()
        heads = f"{len(decision.mask)} of {len(decision.mask.layout)} heads"
        where = "" if self.pace is None else f", {self.pace}"
        self.report(f"{wanted.label}, seed {wanted.seed}: trying {heads}{where}")
        model, done = self.study.subject.model, {}
        if not wanted.asked.gated:
            model, done = cutting.cut(decision)
        self._made = _Made(id, cutting, decision, model, done)
        return self._made

    def _evaluation(self, like: Evaluation, said: Outcome) -> Evaluation:
        """The scores of an outcome over the first rows."""
        how = {"bootstrap": self.scoring.bootstrap, "seed": self.scoring.seed}
        scores = tuple(score(each.metric, said, **how) for each in like.scores)
        return replace(
            like, scores=scores, n=len(said), outcome=said, predictions={}, mask=None,
            rows=self._name(len(said)),
        )  # fmt: skip

    def _name(self, count: int) -> str:
        return self.rows.take(self.order[:count]).fingerprint


def _sides(said: Outcome) -> tuple[Any, Any]:
    return said.predictions, said.labels


def _take(side: Any, numbers: np.ndarray) -> Any:
    return side[numbers] if isinstance(side, np.ndarray) else [side[i] for i in numbers]


def _joined(one: Any, other: Any) -> Any:
    return np.concatenate([one, other]) if isinstance(one, np.ndarray) else [*one, *other]


def _plain(said: Outcome) -> Outcome:
    """As a file gives it back: numbers in double precision."""
    sides = [
        side.astype(np.float64) if isinstance(side, np.ndarray) and side.dtype.kind == "f" else side
        for side in _sides(said)
    ]
    return Outcome(*sides)
