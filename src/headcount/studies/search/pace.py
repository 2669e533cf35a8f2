"""How long a search takes: said before it starts, and how far it is while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from headcount.base.text import lasting
from headcount.costs.shapes import shapes_of
from headcount.repair.finetune import training_of
from headcount.studies.search.bounds import CostBudget
from headcount.studies.search.bracket import about_sizes
from headcount.studies.search.knee import about_points
from headcount.studies.search.options import DETAIL_ROWS

if TYPE_CHECKING:
    from headcount.studies.search.answers import SearchRequest
    from headcount.training.evaluation import Evaluation
    from headcount.training.options import TrainOptions

TRAINING = 3
"""A step forwards and back takes about so many times as long as one forwards."""
PRICED = 8
"""Timings that a budget of time takes: prices of heads, and what it is tried with."""
LONG = 600.0
"""Seconds after which it is said that there is a quicker way."""


@dataclass(kw_only=True)
class Pace:
    """How many prunings a search tries, what one takes, and how many are done."""

    sizes: int
    """Numbers of heads, of all methods together."""
    seeds: int
    """Of each of them, at most."""
    per_prune: float
    """Seconds of one pruning, as foreseen."""
    before: float
    """Seconds of what comes once: measuring heads."""
    after: float
    """Seconds of the held-out estimate, random baselines and timing."""
    tried: dict[object, set[int]] = field(default_factory=dict)
    """Method and share of heads -> seeds."""
    spent: dict[str, float] = field(default_factory=dict)
    """Seconds of every pruning that was made, by its id."""

    @property
    def done(self) -> int:
        """Prunings that were come to, the one at hand included."""
        return sum(map(len, self.tried.values()))

    @property
    def cuts(self) -> int:
        """About how many there will be: those that were tried, and all seeds of other sizes."""
        return self.done + max(0, self.sizes - len(self.tried)) * self.seeds

    @property
    def seconds(self) -> float:
        """About how long all of it takes."""
        return self.before + self.cuts * self.per_prune + self.after

    def step(self, size: object, seed: int) -> None:
        """Come to a pruning; the same one again is the same step."""
        self.tried.setdefault(size, set()).add(seed)

    def __str__(self) -> str:
        """`7 of about 21, about 40 s left`; without the time before pruning was timed."""
        text = f"{self.done} of about {self.cuts}"
        if not self.spent:
            return text
        left = (self.cuts - self.done + 1) * median(self.spent.values()) + self.after
        return f"{text}, about {lasting(left)} left"


def pace_of(request: SearchRequest, full: Evaluation, selection: int, held_out: int) -> Pace:
    """From the time that the whole model took for the selection set."""
    row = full.seconds / max(1, full.n)
    like, search_options = request.like, request.search_options
    tokens = like.calibration.tokens
    # a row of tokens is taken for half of the longest
    rows = like.calibration.samples if tokens is None else 2 * tokens / like.scoring.max_length
    looked = rows * row
    learning = like.learning if request.trains_gates else None
    trainings = [step for step in (training_of(like.repair), learning) if step is not None]
    trained = sum(_rows_trained(training, request) for training in trainings) * TRAINING * row
    # recovery looks at its rows with all heads and without
    repaired = trained + 2 * looked * sum(step.needs == "calibration" for step in like.repair)
    looks = sum(method.needs not in ("nothing", "training") for method in request.methods)
    seeds = search_options.seeds if request.bound is not None else 1
    sizes = 0
    for method in request.methods:
        counts = request.counts(method)
        sizes += about_points(counts) if request.bound is None else about_sizes(counts)
    batches = sum(batch for batch, _ in shapes_of(search_options.batch, search_options.length))
    timed = min(2 * search_options.repeats * batches * row, search_options.timing_seconds)
    priced = 0.0
    if isinstance(request.bound, CostBudget):
        sizes, seeds = 1, 1
        priced = PRICED * timed if request.bound.kind == "latency" else 0.0
    timed = timed if search_options.bench else 0.0
    # importance goes forwards and back, roles forwards with all attention kept
    detailed = (TRAINING + 2) * min(DETAIL_ROWS, like.calibration.samples) * row * request.details
    return Pace(
        sizes=sizes,
        seeds=seeds,
        per_prune=repaired + selection * row,
        before=TRAINING * looked * looks * seeds + priced,
        after=(1 + like.baseline) * (repaired + held_out * row) + held_out * row + timed + detailed,
    )


def _rows_trained(training: TrainOptions, request: SearchRequest) -> float:
    if training.steps is not None:
        return training.steps * training.batch_size
    return training.epochs * len(request.subject.need_task().load("train"))


def estimate(pace: Pace, heads: int, quick: bool) -> str:
    """What is said before the first cut."""
    what = f"about {pace.cuts} prunings" if pace.cuts > 1 else "one pruning"
    less = " --quick takes less." if pace.seconds > LONG and not quick else ""
    return f"Trying {what} of {heads} heads: about {lasting(pace.seconds)} in all.{less}"
