"""How predictions are scored, with a 95 % interval beside every score.

The scores themselves come from scikit-learn, scipy and sacrebleu. For the interval, rows are
weighted anew (`tasks/drawing.py`); every metric is written as a function of such weights, so that a
thousand draws are one matrix product. A metric that the rows cannot tell (Matthews where they have
one class only) is not a number: undefined. Where rows are too few for an interval that is right 19
times in 20, there is none, and `no_interval` says how many it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headcount.base.errors import UsageError
from headcount.base.names import require
from headcount.statistics import Sides, Weighted, interval
from headcount.tasks import bleu, classes, ranks
from headcount.tasks.drawing import draw
from headcount.tasks.scores import Difference, Score
from headcount.tasks.sums import from_sums, ratio


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a model said beside what was right, one row per example.

    Classification: class numbers. Regression: numbers. Translation: sentences. Language modelling:
    predictions are (row, 2) correct tokens and summed negative log-likelihood, labels the number
    of tokens that were asked for.
    """

    predictions: np.ndarray | Sequence[str]
    labels: np.ndarray | Sequence[str]

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Outcome({len(self)} rows)"


@dataclass(frozen=True)
class Metric:
    """A score, and the same score under weightings (draw, row) of the rows."""

    score: Callable[[Any, Any], float]
    weighted: Callable[[Any, Any], Weighted]
    higher_is_better: bool = True
    range: tuple[float, float] = (0.0, 1.0)
    """The least and the largest value there is; intervals stay inside."""
    classes: bool = False
    """Whether labels are classes; else rows are numbers, or sentences."""
    rows: int = 1
    """An interval takes so many rows (`benchmarks/coverage/intervals.py`)."""


def score(
    metric: str, outcome: Outcome | Sequence[Outcome], *, bootstrap: int = 1000, seed: int = 0
) -> Score:
    """The metric with its 95 % interval; without draws the interval is empty.

    Several outcomes are those of several seeds on the same rows: the metric is their mean, and
    both seeds and rows are drawn.
    """
    known, outcomes = get_metric(metric), _same_rows(metric, outcome)
    value = _mean(known, outcomes)
    ends = _interval(known, outcomes, value, paired=False, bootstrap=bootstrap, seed=seed)
    return Score(metric=metric, value=value, **ends)


def difference(
    metric: str,
    before: Outcome,
    after: Outcome | Sequence[Outcome],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Difference:
    """After minus before, with its 95 % interval.

    Both are scored on the same rows, and every draw takes the same rows of both: what makes a row
    hard for the one makes it hard for the other and cancels out, so that the interval is far
    narrower than those of the two scores apart. Several outcomes after are those of several seeds:
    the difference is their mean, and both seeds and rows are drawn.
    """
    known = get_metric(metric)
    outcomes = _same_rows(metric, [before, *_listed(after)])
    value = _mean(known, outcomes[1:]) - _mean(known, [before])
    ends = _interval(known, outcomes, value, paired=True, bootstrap=bootstrap, seed=seed)
    return Difference(metric=metric, value=value, **ends)


def drawn(
    metric: Metric, outcomes: Sequence[Outcome], *, paired: bool, bootstrap: int, seed: int
) -> Sides:
    """All draws of the outcomes' mean, or of the first and of the others' mean."""
    said = [each.predictions for each in outcomes]
    return draw(metric, outcomes[0].labels, said, paired=paired, bootstrap=bootstrap, seed=seed)


def ends_of(sides: Sides) -> dict[str, Any]:
    """`low` and `high` of draws, as they stand in a score or a difference."""
    low, high = sides.interval(_told)
    if high - low > 1e-12:
        return {"low": low, "high": high}
    return {"low": math.nan, "high": math.nan, "no_interval": "the rows have no spread"}


def _told(values: np.ndarray) -> np.ndarray:
    """A score (draw, 1), or the second minus the first (draw, 2)."""
    return values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]


def too_few(metric: Metric, rows: int) -> str:
    """Why so many rows have no interval; empty where they have."""
    return "" if rows >= metric.rows else f"it takes {metric.rows} rows, and there are {rows}"


def _interval(
    metric: Metric, outcomes: Sequence[Outcome], value: float, *, paired: bool, **how: int
) -> dict[str, Any]:
    """`low`, `high` and why they are not known; `how` has `draws` and `seed`."""
    none = {"low": math.nan, "high": math.nan}
    if not how["bootstrap"] or math.isnan(value):
        return none
    if few := too_few(metric, len(outcomes[0])):
        return none | {"no_interval": few}
    return ends_of(drawn(metric, outcomes, paired=paired, **how))


def _listed(outcome: Outcome | Sequence[Outcome]) -> Sequence[Outcome]:
    return [outcome] if isinstance(outcome, Outcome) else outcome


def _same_rows(metric: str, outcome: Outcome | Sequence[Outcome]) -> Sequence[Outcome]:
    """All outcomes; refuse none, no rows, and other rows in one than in the first."""
    outcomes = _listed(outcome)
    if not outcomes or len(outcomes[0]) == 0:
        raise UsageError(f"There is nothing to score by {metric}: no rows.")
    first = outcomes[0]
    for other in outcomes[1:]:
        if not np.array_equal(first.labels, other.labels):
            raise UsageError(
                f"A difference in {metric} needs the same rows before and after, with every seed: "
                f"{len(first)} rows and {len(other)} with other labels were given."
            )
    return outcomes


def _mean(metric: Metric, outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([metric.score(each.predictions, each.labels) for each in outcomes]))


def get_metric(name: str) -> Metric:
    """The metric of this name."""
    return METRICS[require("metric", name, METRICS)]


def _recall(predictions: np.ndarray, labels: np.ndarray) -> float:
    return float(predictions[:, 0].sum() / labels.sum())


def _perplexity(predictions: np.ndarray, labels: np.ndarray) -> float:
    return float(np.exp(predictions[:, 1].sum() / labels.sum()))


def _tokens(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.column_stack([predictions, labels])


NUMBERS = 60
"""Rows that an interval of numbers takes: with 30 a stated 95 % was false in over 5 %."""
METRICS: dict[str, Metric] = {
    "accuracy": Metric(
        classes.accuracy, from_sums(classes.hits, lambda s: ratio(s[:, 0], s[:, 1])), classes=True
    ),
    "f1": Metric(classes.f1, from_sums(classes.positives, classes.f1_sums), classes=True),
    "accuracy_f1": Metric(
        lambda p, y: (classes.accuracy(p, y) + classes.f1(p, y)) / 2,
        from_sums(classes.positives, lambda s: (ratio(s[:, 0], s[:, 1]) + classes.f1_sums(s)) / 2),
        classes=True,
    ),
    "matthews": Metric(
        classes.matthews, classes.weighted_matthews, range=(-1.0, 1.0), classes=True
    ),
    "spearman": Metric(ranks.spearman, ranks.weighted_spearman, range=(-1.0, 1.0), rows=NUMBERS),
    "pearson": Metric(
        ranks.pearson, from_sums(ranks.moments, ranks.pearson_sums), range=(-1.0, 1.0), rows=NUMBERS
    ),
    "recall@1": Metric(
        _recall, from_sums(_tokens, lambda s: ratio(s[:, 0], s[:, 2])), rows=NUMBERS
    ),
    "perplexity": Metric(
        _perplexity,
        from_sums(_tokens, lambda s: np.exp(ratio(s[:, 1], s[:, 2]))),
        higher_is_better=False,
        range=(1.0, math.inf),
        rows=NUMBERS,
    ),
    "bleu": Metric(
        bleu.corpus_bleu,
        from_sums(bleu.sentence_counts, bleu.from_counts),
        range=(0.0, 100.0),
        rows=NUMBERS,
    ),
}


def over_seeds(
    metric: str, values: Sequence[float], rows: int | None, *, differences: bool = False
) -> tuple[float, float, float]:
    """Mean of a metric, or of differences in it, over seeds, with an interval inside its range.

    >>> [round(each, 3) for each in over_seeds("accuracy", [0.8, 0.8], 100)]
    [0.8, 0.774, 0.826]
    """
    low, high = get_metric(metric).range
    limits = (low - high, high - low) if differences else (low, high)
    return interval(values, limits, step_of(metric, rows, float(np.mean(values))))


def step_of(metric: str, rows: int | None, value: float = 1.0) -> float:
    """By how much one row of so many changes a metric, about; of perplexity in shares of it."""
    if not rows:
        return 0.0
    low, high = get_metric(metric).range
    return (high - low if math.isfinite(high) else abs(value)) / rows


def ends(values: Sequence[float], metric: str) -> dict[str, float]:
    """The worst and the best of some scores: of perplexity the best is the least."""
    ordered = sorted(values, reverse=not get_metric(metric).higher_is_better)
    return {"worst": ordered[0], "best": ordered[-1]}
