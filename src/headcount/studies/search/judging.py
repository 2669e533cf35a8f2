"""Is a number of heads enough? Rows where it is undecided, then seeds, and a memory of verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from headcount.studies.search.bounds import MaxDrop
from headcount.studies.search.options import SearchOptions
from headcount.studies.search.trials import Candidate, Trials
from headcount.tasks.metrics import Difference
from headcount.tasks.within import BoundProbability, rows_needed, within
from headcount.training.evaluation import Evaluation

Cut = Callable[[int, int], Candidate]
"""(heads kept, seed) -> the pruning, of one method."""


@dataclass(frozen=True, kw_only=True)
class BoundVerdict:
    """What was found about one number of heads by one method."""

    method: str
    kept: int
    rows: int
    """Rows that it was judged on."""
    seeds: tuple[int, ...]
    within: BoundProbability
    """Over all its seeds."""
    accepted: bool
    final: bool
    """Judged on the whole selection set."""
    tried: tuple[dict[str, Any], ...]
    """Every seed by itself, as `search.json` tells it."""

    @property
    def best(self) -> int:
        """The seed that lost least."""
        by_seed = {one["seed"]: one["lost"] for one in self.tried}
        return min(self.seeds, key=lambda seed: (by_seed[seed], seed))


@dataclass(kw_only=True)
class Judge:
    """Judges numbers of heads, each once."""

    trials: Trials
    bound: MaxDrop | None
    """None: nothing is accepted or not, only scored, on all rows."""
    search_options: SearchOptions
    seed: int
    """The first of the seeds."""
    sign: float
    """1 where a higher score is better, -1 where a lower one is."""

    def __post_init__(self) -> None:
        self.verdicts: dict[tuple[str, int], BoundVerdict] = {}

    def judge(self, cut: Cut, kept: int, *, thorough: bool = False) -> BoundVerdict:
        """Whether so many heads are enough; `thorough` on all rows, whatever the first say."""
        first = cut(kept, self.seed)
        key = (first.label, kept)
        known = self.verdicts.get(key)
        if known is not None and (known.final or not thorough):
            return known
        stages = self.trials.stages
        if thorough or self.bound is None:
            stages = stages[-1:]
        rows, within_bound = 0, None
        for rows in stages:
            within_bound = self._within([first], rows)
            if self._decided(within_bound):
                break
        assert within_bound is not None
        cuts = [first]
        while rows == stages[-1] and not self._decided(within_bound):
            if len(cuts) == self.search_options.seeds or not self._may_change(
                within_bound, first, cuts
            ):
                break
            cuts.append(cut(kept, self.seed + len(cuts)))
            within_bound = self._within(cuts, rows)
        self.verdicts[key] = self._verdict(cuts, kept, rows, within_bound)
        return self.verdicts[key]

    def _decided(self, within_bound: BoundProbability) -> bool:
        low, high = self.search_options.undecided
        # few rows show little: that a loss was not shown to be within is no sign that it is not
        return self.bound is None or not (
            low < within_bound.possible and within_bound.probability < high
        )

    def _may_change(
        self, within_bound: BoundProbability, first: Candidate, cuts: list[Candidate]
    ) -> bool:
        """Whether other seeds could change the verdict, or the rows cannot tell whatever they say.

        What is enough by one seed may be luck, and is asked again. What is too few is not where it
        would be still if every other seed gained as much as it may lose.
        """
        lost, seeds, done = within_bound.difference, self.search_options.seeds, len(cuts)
        spread = (lost.high - lost.low) / (2 * NormalDist().inv_cdf(0.975))
        if (
            self.bound is None
            or within_bound.probability >= self.search_options.confidence
            or not spread > 0
        ):
            return True
        allowed = self.bound.allowed(self.trials.before(first, self.trials.stages[-1]).score)
        best = (done * self.sign * lost.value + (seeds - done) * allowed) / seeds
        return NormalDist().cdf((allowed + best) / spread) >= self.search_options.confidence

    def _within(self, cuts: list[Candidate], rows: int) -> BoundProbability:
        before = self.trials.before(cuts[0], rows)
        afters = [self.trials.after(candidate, rows) for candidate in cuts]
        bound = self.bound or MaxDrop(0.0, False)
        scoring = self.trials.scoring
        assert before.outcome is not None
        return within(
            before.scores[0].metric,
            before.outcome,
            [candidate.outcome for candidate in afters if candidate.outcome is not None],
            bound.value,
            relative=bound.relative,
            bootstrap=scoring.bootstrap,
            seed=scoring.seed,
        )

    def _verdict(
        self, cuts: list[Candidate], kept: int, rows: int, within_bound: BoundProbability
    ) -> BoundVerdict:
        # what cannot be scored is not taken
        accepted = (
            not math.isnan(within_bound.probability)
            and within_bound.probability >= self.search_options.confidence
        )
        tried = []
        for candidate in cuts:
            alone = self._within([candidate], rows)
            tried.append(
                {
                    "method": candidate.label,
                    "kept": kept,
                    "seed": candidate.seed,
                    "rows": rows,
                    "score": self.trials.after(candidate, rows).score,
                    "difference": shown(alone.difference),
                    "probability": None if self.bound is None else known(alone.probability),
                    "accepted": None if self.bound is None else accepted,
                    "id": self.trials.run(candidate, rows).key,
                    "lost": -self.sign * alone.difference.value,
                }
            )
        return BoundVerdict(
            method=cuts[0].label,
            kept=kept,
            rows=rows,
            seeds=tuple(candidate.seed for candidate in cuts),
            within=within_bound,
            accepted=accepted,
            final=rows == self.trials.stages[-1],
            tried=tuple(tried),
        )


def known(probability: float) -> float | None:
    """None where rows are too few for a probability."""
    return None if math.isnan(probability) else probability


def rows_line(before: Evaluation, bound: MaxDrop, confidence: float) -> str:
    """How many rows it takes to tell that a loss is within the bound, beside those there are."""
    assert before.outcome is not None
    metric, full = before.scores[0].metric, before.score
    loss = f"{bound} of {full:.3f}" if bound.relative else f"{bound} in {metric}"
    sure = f"a probability of {100 * confidence:g} %"
    needed = rows_needed(
        metric, before.outcome, bound.value, relative=bound.relative, confidence=confidence
    )
    if needed is None:
        return (
            f"{loss} cannot be shown on any number of rows: a pruned model is within it only where "
            f"it scores better than all heads with {sure}."
        )
    few, many = needed
    return (
        f"{loss} needs about {few:,} rows for {sure} where no row changes, and about {many:,} "
        f"where one in 20 does; there are {before.n:,} in the selection set."
    )


def shown(lost: Difference) -> dict[str, Any]:
    """A difference as `search.json` has it; where it has no interval, with the reason."""
    ends = {"value": lost.value, "low": lost.low, "high": lost.high}
    return ends | ({"no_interval": lost.no_interval} if lost.no_interval else {})
