"""How predictions are scored, with a 95 % interval beside every score.

The scores themselves come from scikit-learn, scipy and sacrebleu. For the interval, rows are
weighted anew (`tasks/drawing.py`); every metric is written as a function of such weights, so that a
thousand resamples are one matrix product. A metric that the rows do not define (Matthews where they
have one class only) is NaN: undefined. Where rows are too few for an interval that is right 19
times in 20, there is none, and `no_interval` says how many it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from headcount.base.errors import UsageError
from headcount.base.names import require
from headcount.statistics import Sides, Weighted
from headcount.tasks import bleu, entities, text_scores, transcripts
from headcount.tasks import formulas as f
from headcount.tasks.drawing import draw
from headcount.tasks.formulas import Values, from_sums, ratio
from headcount.tasks.scores import Difference, Score


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a model predicted beside what was right, one row per example.

    Classification: class numbers. Regression: numbers. Text to text and speech: texts; and
    sentences of tags. Language modelling:
    predictions are (row, 2) correct tokens and summed negative log-likelihood, in windows with
    the bytes of their text as a third column; labels are the number of tokens with a label.
    Embeddings and choices: (row, 2) numbers between which metrics choose.
    """

    predictions: Values
    labels: Values

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Outcome({len(self)} rows)"


@dataclass(frozen=True)
class Metric:
    """A score, and the same score under weightings (resample, row) of the rows."""

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
    """The metric with its 95 % interval; without resamples the interval is empty.

    Several outcomes are those of several seeds on the same rows: the metric is their mean, and
    both seeds and rows are resampled.
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

    Both are scored on the same rows, and every resample takes the same rows of both: what makes a
    row hard for one makes it hard for the other and cancels out, so that the interval is far
    narrower than those of the two scores apart. Several outcomes after are those of several seeds:
    the difference is their mean, and both seeds and rows are resampled.
    """
    known = get_metric(metric)
    afters = [after] if isinstance(after, Outcome) else after
    outcomes = _same_rows(metric, [before, *afters])
    first = _mean(known, [before])
    value = _mean(known, outcomes[1:]) - first
    ends = _interval(known, outcomes, value, paired=True, bootstrap=bootstrap, seed=seed)
    return Difference(
        metric=metric, value=value, relative=relative_change(metric, value, first), **ends
    )


def relative_change(metric: str, change: float, before: float) -> float:
    """The change as a share of the score before; NaN of a metric that has a largest value.

    >>> relative_change("perplexity", 3.0, 30.0), relative_change("accuracy", 0.1, 0.8)
    (0.1, nan)
    """
    return change / before if before and math.isinf(get_metric(metric).range[1]) else math.nan


def drawn(
    metric: Metric, outcomes: Sequence[Outcome], *, paired: bool, bootstrap: int, seed: int
) -> Sides:
    """All resamples of the outcomes' mean, or of the first and of the others' mean."""
    models = [outcome.predictions for outcome in outcomes]
    return draw(metric, outcomes[0].labels, models, paired=paired, bootstrap=bootstrap, seed=seed)


class Ends(TypedDict):
    """The ends of an interval, as they stand in a score or a difference."""

    low: float
    high: float
    no_interval: str


def no_ends(reason: str = "") -> Ends:
    """No interval, and why."""
    return {"low": math.nan, "high": math.nan, "no_interval": reason}


def ends_of(sides: Sides) -> Ends:
    """The interval of resamples: of scores (resample, 1), or second minus first (resample, 2)."""
    low, high = sides.interval(
        lambda values: values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]
    )
    if high - low > 1e-12:
        return {"low": low, "high": high, "no_interval": ""}
    return no_ends("the rows have no spread")


def too_few(metric: Metric, rows: int) -> str:
    """Why so many rows have no interval; empty where they have."""
    return "" if rows >= metric.rows else f"it takes {metric.rows} rows, and there are {rows}"


def _interval(
    metric: Metric,
    outcomes: Sequence[Outcome],
    value: float,
    *,
    paired: bool,
    bootstrap: int,
    seed: int,
) -> Ends:
    if not bootstrap or math.isnan(value):
        return no_ends()
    if few := too_few(metric, len(outcomes[0])):
        return no_ends(few)
    return ends_of(drawn(metric, outcomes, paired=paired, bootstrap=bootstrap, seed=seed))


def _same_rows(metric: str, outcome: Outcome | Sequence[Outcome]) -> Sequence[Outcome]:
    """All outcomes; refuse none, no rows, and other rows in one than in the first."""
    outcomes = [outcome] if isinstance(outcome, Outcome) else outcome
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
    return float(np.mean([metric.score(one.predictions, one.labels) for one in outcomes]))


def get_metric(name: str) -> Metric:
    """The metric of this name."""
    return METRICS[require("metric", name, METRICS)]


def _recall(predictions: np.ndarray, labels: np.ndarray) -> float:
    return float(predictions[:, 0].sum() / labels.sum())


def _perplexity(predictions: np.ndarray, labels: np.ndarray) -> float:
    return float(np.exp(predictions[:, 1].sum() / labels.sum()))


def _tokens(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.column_stack([predictions, labels])


def _of_sums(
    rows: Callable[[Any, Any], np.ndarray], combine: Callable[[np.ndarray], np.ndarray]
) -> Callable[[object, object], float]:
    """The score of the rows as they are, of a metric that is a function of sums over them."""
    return lambda predictions, labels: float(combine(rows(predictions, labels).sum(0)[None])[0])


def column(at: int, *, low: float = 0.0, high: float = 1.0) -> Metric:
    """The mean of a column of numbers, one row per example."""

    def numbers(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.column_stack([predictions[:, at], np.ones(len(labels))])

    return Metric(
        lambda predictions, _: float(predictions[:, at].mean()),
        from_sums(numbers, lambda s: ratio(s[:, 0], s[:, 1])),
        range=(low, high),
        rows=NUMBERS,
    )


def _errors(counts: Callable[[Any, Any], np.ndarray]) -> Metric:
    """Errors by words or letters of the references; with words put in it may be above 1."""
    return Metric(
        _of_sums(counts, transcripts.rate_of_sums),
        from_sums(counts, transcripts.rate_of_sums),
        higher_is_better=False,
        range=(0.0, math.inf),
        rows=NUMBERS,
    )


def _bits_per_byte(sums: np.ndarray) -> np.ndarray:
    return ratio(sums[:, 1], sums[:, 2], nothing=math.nan) / math.log(2)


NUMBERS = 60
"""Rows that an interval of numbers takes: with 30 a stated 95 % was false in over 5 %."""
METRICS: dict[str, Metric] = {
    "accuracy": Metric(
        f.accuracy, from_sums(f.hits, lambda s: ratio(s[:, 0], s[:, 1])), classes=True
    ),
    "top5": Metric(f.top5, from_sums(f.top_hits, lambda s: ratio(s[:, 0], s[:, 1])), classes=True),
    "f1": Metric(f.f1, from_sums(f.positives, f.f1_sums), classes=True),
    "accuracy_f1": Metric(
        lambda p, y: (f.accuracy(p, y) + f.f1(p, y)) / 2,
        from_sums(f.positives, lambda s: (ratio(s[:, 0], s[:, 1]) + f.f1_sums(s)) / 2),
        classes=True,
    ),
    "matthews": Metric(f.matthews, f.weighted_matthews, range=(-1.0, 1.0), classes=True),
    "spearman": Metric(f.spearman, f.weighted_spearman, range=(-1.0, 1.0), rows=NUMBERS),
    "pearson": Metric(
        f.pearson,
        from_sums(f.moments, f.pearson_sums),
        range=(-1.0, 1.0),
        rows=NUMBERS,
    ),
    "recall@1": Metric(
        _recall, from_sums(_tokens, lambda s: ratio(s[:, 0], s[:, -1])), rows=NUMBERS
    ),
    "perplexity": Metric(
        _perplexity,
        from_sums(_tokens, lambda s: np.exp(ratio(s[:, 1], s[:, -1]))),
        higher_is_better=False,
        range=(1.0, math.inf),
        rows=NUMBERS,
    ),
    "entity_f1": Metric(
        _of_sums(entities.entity_counts, entities.f1_of_counts),
        from_sums(entities.entity_counts, entities.f1_of_counts),
        rows=NUMBERS,
    ),
    "token_accuracy": Metric(
        _of_sums(entities.word_counts, lambda s: ratio(s[:, 0], s[:, 1])),
        from_sums(entities.word_counts, lambda s: ratio(s[:, 0], s[:, 1])),
        rows=NUMBERS,
    ),
    "acc": column(0),
    "acc_norm": column(1),
    "answer_f1": column(0),
    "exact_match": column(1),
    "fidelity": column(0, low=-1.0),
    "neighbours@10": column(1),
    "ndcg@10": column(0),
    "recall@10": column(1),
    "bits_per_byte": Metric(
        _of_sums(_tokens, _bits_per_byte),
        from_sums(_tokens, _bits_per_byte),
        higher_is_better=False,
        range=(0.0, math.inf),
        rows=NUMBERS,
    ),
    "rouge_l": Metric(
        _of_sums(text_scores.rouge_rows, lambda s: ratio(s[:, 0], s[:, 1])),
        from_sums(text_scores.rouge_rows, lambda s: ratio(s[:, 0], s[:, 1])),
        rows=NUMBERS,
    ),
    "chrf": Metric(
        _of_sums(text_scores.character_counts, text_scores.chrf_of_counts),
        from_sums(text_scores.character_counts, text_scores.chrf_of_counts),
        range=(0.0, 100.0),
        rows=NUMBERS,
    ),
    "wer": _errors(transcripts.word_errors),
    "cer": _errors(transcripts.letter_errors),
    "bleu": Metric(
        bleu.corpus_bleu,
        from_sums(bleu.sentence_counts, bleu.from_counts),
        range=(0.0, 100.0),
        rows=NUMBERS,
    ),
}


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
