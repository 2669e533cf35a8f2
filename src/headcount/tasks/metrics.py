"""How predictions are scored, with a bootstrap interval beside every score.

The scores themselves come from scikit-learn, scipy and sacrebleu. For the interval, rows are drawn
again with replacement; a draw is a vector of how often each row was drawn, and every metric is
written as a function of such weights, so that a thousand draws are one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headcount.errors import UsageError, did_you_mean
from headcount.tasks import bleu
from headcount.tasks.ranks import weighted_spearman


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


@dataclass(frozen=True, kw_only=True)
class Score:
    """One metric's value with its 95 % interval."""

    metric: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.metric} {self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return asdict(self)


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

    def __str__(self) -> str:
        if math.isnan(self.low):  # no draws, no interval
            return _signed(self.value)
        return f"{_signed(self.value)} [{_signed(self.low)}, {_signed(self.high)}]"

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return asdict(self)


@dataclass(frozen=True)
class Metric:
    """A score, and the same score under weightings (draw, row) of the rows."""

    score: Callable[[Any, Any], float]
    weighted: Callable[[Any, Any], Callable[[np.ndarray], np.ndarray]]
    higher_is_better: bool = True
    range: tuple[float, float] = (0.0, 1.0)
    """The least and the largest value there is; intervals stay inside."""


def score(metric: str, outcome: Outcome, *, draws: int = 1000, seed: int = 0) -> Score:
    """The metric with its bootstrap percentile interval; without draws the interval is empty."""
    known = get_metric(metric)
    if len(outcome) == 0:
        raise UsageError(f"There is nothing to score by {metric}: no rows.")
    value = known.score(outcome.predictions, outcome.labels)
    if not draws:
        return Score(metric=metric, value=value, low=float("nan"), high=float("nan"))
    weighted = known.weighted(outcome.predictions, outcome.labels)
    values = np.concatenate([weighted(chunk) for chunk in _weights(len(outcome), draws, seed)])
    low, high = np.nanquantile(values, [0.025, 0.975]).clip(*known.range)  # rounding goes past it
    return Score(metric=metric, value=value, low=float(low), high=float(high))


def difference(
    metric: str, before: Outcome, after: Outcome, *, draws: int = 1000, seed: int = 0
) -> Difference:
    """After minus before, with its bootstrap percentile interval.

    Both are scored on the same rows, and every draw takes the same rows of both: what makes a row
    hard for the one makes it hard for the other and cancels out, so that the interval is far
    narrower than those of the two scores apart.
    """
    known = get_metric(metric)
    if not np.array_equal(before.labels, after.labels):
        raise UsageError(
            f"A difference in {metric} needs the same rows before and after: "
            f"{len(before)} rows and {len(after)} with other labels were given."
        )
    if len(before) == 0:
        raise UsageError(f"There is nothing to score by {metric}: no rows.")
    sides = (before, after)
    first, last = (known.score(side.predictions, side.labels) for side in sides)
    if not draws:
        return Difference(metric=metric, value=last - first, low=math.nan, high=math.nan)
    weighted = [known.weighted(side.predictions, side.labels) for side in sides]
    values = np.concatenate(
        [weighted[1](chunk) - weighted[0](chunk) for chunk in _weights(len(before), draws, seed)]
    )
    low, high = np.nanquantile(values, [0.025, 0.975])
    return Difference(metric=metric, value=last - first, low=float(low), high=float(high))


def get_metric(name: str) -> Metric:
    """The metric of this name."""
    if name not in METRICS:
        hint = did_you_mean(name, METRICS)
        raise UsageError(f"There is no metric '{name}'.{hint} Known: {', '.join(METRICS)}.")
    return METRICS[name]


def _signed(value: float) -> str:
    """Three decimals with a sign, a true minus; nothing has none."""
    shown = f"{value:+.3f}"
    return "0.000" if float(shown) == 0 else shown.replace("-", "\N{MINUS SIGN}")


def _weights(size: int, draws: int, seed: int) -> Iterator[np.ndarray]:
    """(draw, row) how often each row was drawn, in pieces of at most 4 million numbers."""
    generator = np.random.default_rng(seed)
    step = max(1, 4_000_000 // size)
    for start in range(0, draws, step):
        count = min(step, draws - start)
        drawn = generator.integers(size, size=(count, size))
        drawn += np.arange(count)[:, None] * size
        yield np.bincount(drawn.ravel(), minlength=count * size).reshape(count, size).astype(float)


def _from_sums(
    rows: Callable[[Any, Any], np.ndarray], combine: Callable[[np.ndarray], np.ndarray]
) -> Callable[[Any, Any], Callable[[np.ndarray], np.ndarray]]:
    """A metric that only needs sums over rows: rows (row, k), combine (draw, k) -> (draw,)."""

    def weighted(predictions: Any, labels: Any) -> Callable[[np.ndarray], np.ndarray]:
        table = rows(predictions, labels).astype(float)
        return lambda weights: combine(weights @ table)

    return weighted


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros_like(above, dtype=float), where=below != 0)


def _constant(values: np.ndarray) -> bool:
    return len(values) < 2 or bool((values == values[0]).all())


# -- classification ------------------------------------------------------------------------------


def _accuracy(predictions: np.ndarray, labels: np.ndarray) -> float:
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(labels, predictions))


def _f1(predictions: np.ndarray, labels: np.ndarray) -> float:
    """F1 of class 1, as GLUE counts it."""
    from sklearn.metrics import f1_score

    return float(f1_score(labels == 1, predictions == 1, zero_division=0.0))  # pyright: ignore[reportArgumentType]


def _matthews(predictions: np.ndarray, labels: np.ndarray) -> float:
    from sklearn.metrics import matthews_corrcoef

    if _constant(predictions) or _constant(labels):
        return 0.0  # as sklearn says too, but with a warning
    return float(matthews_corrcoef(labels, predictions))


def _hits(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.stack([predictions == labels, np.ones(len(labels), bool)], axis=1)


def _positives(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Correct, all, and of class 1: true positives, predicted, labelled."""
    said, right = predictions == 1, labels == 1
    return np.column_stack([_hits(predictions, labels), said & right, said, right])


def _f1_sums(sums: np.ndarray) -> np.ndarray:
    return _ratio(2 * sums[:, 2], sums[:, 3] + sums[:, 4])


def _confusion(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(row, class * class) one-hot of (label, prediction)."""
    size = int(max(predictions.max(), labels.max())) + 1
    return np.eye(size * size, dtype=bool)[labels * size + predictions]


def _matthews_sums(sums: np.ndarray) -> np.ndarray:
    size = round(sums.shape[1] ** 0.5)
    table = sums.reshape(-1, size, size)
    right, said = table.sum(2), table.sum(1)
    total = right.sum(1)
    hits = np.trace(table, axis1=1, axis2=2)
    above = hits * total - (right * said).sum(1)
    below = (total**2 - (right**2).sum(1)) * (total**2 - (said**2).sum(1))
    return _ratio(above, np.sqrt(below))


# -- regression ----------------------------------------------------------------------------------


def _spearman(predictions: np.ndarray, labels: np.ndarray) -> float:
    """0 where one side is constant: such predictions rank nothing."""
    from scipy.stats import spearmanr

    if _constant(predictions) or _constant(labels):
        return 0.0
    return float(spearmanr(predictions, labels).statistic)  # pyright: ignore[reportAttributeAccessIssue]


def _pearson(predictions: np.ndarray, labels: np.ndarray) -> float:
    from scipy.stats import pearsonr

    if _constant(predictions) or _constant(labels):
        return 0.0
    return float(pearsonr(predictions, labels).statistic)  # pyright: ignore[reportAttributeAccessIssue]


def _moments(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    # centred first: sums of squares of uncentred numbers lose digits
    x, y = predictions - predictions.mean(), labels - labels.mean()
    return np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])


def _pearson_sums(sums: np.ndarray) -> np.ndarray:
    n, x, y, xx, yy, xy = sums.T
    below = (n * xx - x**2).clip(min=0) * (n * yy - y**2).clip(min=0)
    return _ratio(n * xy - x * y, np.sqrt(below))


# -- language modelling and translation ----------------------------------------------------------


def _recall(predictions: np.ndarray, labels: np.ndarray) -> float:
    return float(predictions[:, 0].sum() / labels.sum())


def _perplexity(predictions: np.ndarray, labels: np.ndarray) -> float:
    return float(np.exp(predictions[:, 1].sum() / labels.sum()))


def _tokens(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.column_stack([predictions, labels])


METRICS: dict[str, Metric] = {
    "accuracy": Metric(_accuracy, _from_sums(_hits, lambda s: _ratio(s[:, 0], s[:, 1]))),
    "f1": Metric(_f1, _from_sums(_positives, _f1_sums)),
    "accuracy_f1": Metric(
        lambda p, y: (_accuracy(p, y) + _f1(p, y)) / 2,
        _from_sums(_positives, lambda s: (_ratio(s[:, 0], s[:, 1]) + _f1_sums(s)) / 2),
    ),
    "matthews": Metric(_matthews, _from_sums(_confusion, _matthews_sums), range=(-1.0, 1.0)),
    "spearman": Metric(_spearman, weighted_spearman, range=(-1.0, 1.0)),
    "pearson": Metric(_pearson, _from_sums(_moments, _pearson_sums), range=(-1.0, 1.0)),
    "recall@1": Metric(_recall, _from_sums(_tokens, lambda s: _ratio(s[:, 0], s[:, 2]))),
    "perplexity": Metric(
        _perplexity,
        _from_sums(_tokens, lambda s: np.exp(_ratio(s[:, 1], s[:, 2]))),
        higher_is_better=False,
        range=(1.0, math.inf),
    ),
    "bleu": Metric(
        bleu.corpus_bleu, _from_sums(bleu.sentence_counts, bleu.from_counts), range=(0.0, 100.0)
    ),
}
