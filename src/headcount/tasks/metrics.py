"""How predictions are scored, with a bootstrap interval beside every score.

The scores themselves come from scikit-learn, scipy and sacrebleu. For the interval, rows are drawn
again with replacement; a draw is a vector of how often each row was drawn, and every metric is
written as a function of such weights, so that a thousand draws are one matrix product. A metric
that the rows cannot tell (Matthews where they have one class only) is not a number: undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headcount.errors import UsageError
from headcount.files import require_fields
from headcount.names import require
from headcount.statistics import Weighted, bootstrap, percentiles
from headcount.tasks import bleu, classes, ranks
from headcount.tasks.sums import from_sums, ratio
from headcount.text import line


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


@dataclass(frozen=True, kw_only=True)
class Score:
    """One metric's value with its 95 % interval; not a number where the metric is undefined.

    >>> print(Score(metric="f1", value=0.5, low=0.4, high=0.6))
    f1 0.5000 [0.4000, 0.6000]
    >>> print(Score(metric="f1", value=math.nan, low=math.nan, high=math.nan, draws_undefined=99))
    f1 undefined
    """

    metric: str
    value: float
    low: float
    high: float
    draws_undefined: int = 0
    """Draws of the bootstrap that have no score; the interval is that of the others."""

    @property
    def shown(self) -> str:
        """The value to read."""
        return "undefined" if math.isnan(self.value) else f"{self.value:.4f}"

    @property
    def interval(self) -> str:
        """The interval to read, and how many draws are missing in it; empty without one."""
        if math.isnan(self.low):
            return ""
        missing = f", {self.draws_undefined} draws undefined" if self.draws_undefined else ""
        return f"[{self.low:.4f}, {self.high:.4f}]{missing}"

    def __str__(self) -> str:
        return f"{self.metric} {self.shown} {self.interval}".rstrip()

    def __repr__(self) -> str:
        return line(f"Score({self})")

    def to_json(self) -> dict[str, Any]:
        """A plain dict; what is undefined is None."""
        return _plain(asdict(self))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Score:
        """What `to_json` wrote."""
        types = {"metric": str, **dict.fromkeys(("value", "low", "high"), float | None)}
        some = {"draws_undefined": int}
        require_fields(data, types | some, "This is no score", optional=some)
        numbers = {name: data[name] for name in ("value", "low", "high")}
        return cls(
            metric=data["metric"],
            draws_undefined=data.get("draws_undefined", 0),
            **{name: math.nan if value is None else value for name, value in numbers.items()},
        )


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How much more a metric is after than before on the same rows, with its 95 % interval.

    >>> print(Difference(metric="accuracy", value=-0.003, low=-0.0112, high=0.004))
    −0.003 [−0.011, +0.004]
    """

    metric: str
    value: float
    low: float
    high: float
    draws_undefined: int = 0
    """Draws in which one side has no score; the interval is that of the others."""

    def __str__(self) -> str:
        if math.isnan(self.low):
            return _signed(self.value)
        missing = f", {self.draws_undefined} draws undefined" if self.draws_undefined else ""
        return f"{_signed(self.value)} [{_signed(self.low)}, {_signed(self.high)}]{missing}"

    def __repr__(self) -> str:
        return line(f"Difference({self.metric} {self})")

    def to_json(self) -> dict[str, Any]:
        """A plain dict; what is undefined is None."""
        return _plain(asdict(self))


@dataclass(frozen=True)
class Metric:
    """A score, and the same score under weightings (draw, row) of the rows."""

    score: Callable[[Any, Any], float]
    weighted: Callable[[Any, Any], Weighted]
    higher_is_better: bool = True
    range: tuple[float, float] = (0.0, 1.0)
    """The least and the largest value there is; intervals stay inside."""


def score(
    metric: str, outcome: Outcome | Sequence[Outcome], *, draws: int = 1000, seed: int = 0
) -> Score:
    """The metric with its bootstrap percentile interval; without draws the interval is empty.

    Several outcomes are those of several seeds on the same rows: the metric is their mean, and
    both seeds and rows are drawn.
    """
    known, outcomes = get_metric(metric), _same_rows(metric, outcome)
    value = _mean(known, outcomes)
    if not draws:
        return Score(metric=metric, value=value, low=math.nan, high=math.nan)
    weighted = [known.weighted(each.predictions, each.labels) for each in outcomes]
    values = bootstrap(weighted, len(outcomes[0]), draws=draws, seed=seed)
    low, high, undefined = percentiles(values.clip(*known.range))  # rounding goes past it
    return Score(metric=metric, value=value, low=low, high=high, draws_undefined=undefined)


def difference(
    metric: str,
    before: Outcome,
    after: Outcome | Sequence[Outcome],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> Difference:
    """After minus before, with its bootstrap percentile interval.

    Both are scored on the same rows, and every draw takes the same rows of both: what makes a row
    hard for the one makes it hard for the other and cancels out, so that the interval is far
    narrower than those of the two scores apart. Several outcomes after are those of several seeds:
    the difference is their mean, and both seeds and rows are drawn.
    """
    known = get_metric(metric)
    _, *outcomes = _same_rows(metric, [before, *_listed(after)])
    value = _mean(known, outcomes) - _mean(known, [before])
    if not draws:
        return Difference(metric=metric, value=value, low=math.nan, high=math.nan)
    weighted = [
        _minus(known.weighted(each.predictions, each.labels),
               known.weighted(before.predictions, before.labels))
        for each in outcomes
    ]  # fmt: skip
    values = bootstrap(weighted, len(before), draws=draws, seed=seed)
    low, high, undefined = percentiles(values)
    return Difference(metric=metric, value=value, low=low, high=high, draws_undefined=undefined)


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


def _minus(own: Weighted, other: Weighted) -> Weighted:
    return lambda weights: own(weights) - other(weights)


def get_metric(name: str) -> Metric:
    """The metric of this name."""
    return METRICS[require("metric", name, METRICS)]


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """JSON has no word for what is not a finite number."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in data.items()
    }


def _signed(value: float) -> str:
    """Three decimals with a sign, a true minus; nothing has none."""
    if math.isnan(value):
        return "undefined"
    shown = f"{value:+.3f}"
    return "0.000" if float(shown) == 0 else shown.replace("-", "\N{MINUS SIGN}")


def _recall(predictions: np.ndarray, labels: np.ndarray) -> float:
    return float(predictions[:, 0].sum() / labels.sum())


def _perplexity(predictions: np.ndarray, labels: np.ndarray) -> float:
    return float(np.exp(predictions[:, 1].sum() / labels.sum()))


def _tokens(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.column_stack([predictions, labels])


METRICS: dict[str, Metric] = {
    "accuracy": Metric(
        classes.accuracy, from_sums(classes.hits, lambda s: ratio(s[:, 0], s[:, 1]))
    ),
    "f1": Metric(classes.f1, from_sums(classes.positives, classes.f1_sums)),
    "accuracy_f1": Metric(
        lambda p, y: (classes.accuracy(p, y) + classes.f1(p, y)) / 2,
        from_sums(classes.positives, lambda s: (ratio(s[:, 0], s[:, 1]) + classes.f1_sums(s)) / 2),
    ),
    "matthews": Metric(classes.matthews, classes.weighted_matthews, range=(-1.0, 1.0)),
    "spearman": Metric(ranks.spearman, ranks.weighted_spearman, range=(-1.0, 1.0)),
    "pearson": Metric(
        ranks.pearson, from_sums(ranks.moments, ranks.pearson_sums), range=(-1.0, 1.0)
    ),
    "recall@1": Metric(_recall, from_sums(_tokens, lambda s: ratio(s[:, 0], s[:, 2]))),
    "perplexity": Metric(
        _perplexity,
        from_sums(_tokens, lambda s: np.exp(ratio(s[:, 1], s[:, 2]))),
        higher_is_better=False,
        range=(1.0, math.inf),
    ),
    "bleu": Metric(
        bleu.corpus_bleu, from_sums(bleu.sentence_counts, bleu.from_counts), range=(0.0, 100.0)
    ),
}


def ends(values: Sequence[float], metric: str) -> dict[str, float]:
    """The worst and the best of some scores: of perplexity the best is the least."""
    ordered = sorted(values, reverse=not get_metric(metric).higher_is_better)
    return {"worst": ordered[0], "best": ordered[-1]}
