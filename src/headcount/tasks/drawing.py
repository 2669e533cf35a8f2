"""Bootstrap resamples of a metric's rows, behind every interval and every probability.

Rows of classes are counted, equal ones together, and what was not seen among them is a row on which
one more prediction is wrong, or right. Rows that are numbers (correlations, perplexity, BLEU) stay
apart; the most telling of them comes once more. Where two models predict the same in every such
row, the unseen row is one on which one of them predicts what belongs to another row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headcount.statistics import Sides, draw_sides, most_telling, widening
from headcount.tasks.formulas import NEAR, Values

if TYPE_CHECKING:
    from headcount.tasks.metrics import Metric


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, those that were not seen among them, and how often each counts."""

    labels: Values
    models: Sequence[Values]
    """The predictions of each model, row by row."""
    counts: np.ndarray
    unseen: tuple[np.ndarray, np.ndarray] | None
    """(row,) what is added for the lower and for the upper end; None: the most telling row."""


def draw(
    metric: Metric,
    labels: Values,
    models: Sequence[Values],
    *,
    paired: bool,
    bootstrap: int,
    seed: int,
) -> Sides:
    """Scores in all resamples: (resample, 1) the models' mean; `paired`, (resample, 2) the first
    model and the mean of the others.

    Several models are seeds: they are drawn as rows are, the same rows for all of them.
    """
    table = table_of(metric, labels, models, paired=paired)
    weighted = [metric.weighted(predictions, table.labels) for predictions in table.models]
    first = int(paired)

    def together(weights: np.ndarray) -> np.ndarray:
        return np.column_stack([score(weights) for score in weighted])

    def target(weights: np.ndarray) -> np.ndarray:
        scores = together(weights)
        return scores[:, first:].mean(1) - (scores[:, 0] if paired else 0.0)

    lower, upper = table.unseen or most_telling(target, table.counts)
    drawn = draw_sides(together, table.counts, lower, upper, bootstrap=bootstrap, seed=seed)
    point = together(table.counts[None].astype(float))[0]
    wide = 1.0 if metric.classes else widening(len(labels))
    sides = []
    for side in (drawn.lower, drawn.upper):
        # rounding and widening go past what the metric can be
        values = (point + wide * (side - point)).clip(*metric.range)
        sides.append(_over_seeds(values, first, seed).clip(*metric.range))
    return Sides(*sides)


def _over_seeds(values: np.ndarray, first: int, seed: int) -> np.ndarray:
    """(resample, model) -> (resample, first + 1): the later models resampled, their mean."""
    many = values.shape[1] - first
    if many == 1:
        return values
    drawn = np.random.default_rng((seed, 2)).integers(many, size=(len(values), many))
    after = values[:, first:]
    mean = after.mean(1)
    # a resample of few is less spread than they are
    spread = np.take_along_axis(after, drawn, axis=1).mean(1) - mean
    return np.column_stack([values[:, :first], mean + spread * np.sqrt(many / (many - 1))])


def table_of(metric: Metric, labels: Values, models: Sequence[Values], *, paired: bool) -> Table:
    """The rows to resample."""
    if metric.classes:
        return _of_classes(np.asarray(labels), [np.asarray(values) for values in models], paired)
    same = paired and all(_equal(models[0], other) for other in models[1:])
    if same:
        return _of_same(labels, models)
    return Table(labels, models, np.ones(len(labels)), None)


def _of_classes(labels: np.ndarray, models: Sequence[np.ndarray], paired: bool) -> Table:
    """Equal rows as one, and for every class a row that is wrong after, or before, or at all."""
    seen, counts = np.unique(np.column_stack([labels, *models]), axis=0, return_counts=True)
    names = np.unique(labels)
    known = np.unique(seen[seen < NEAR])  # the others may be right, by top5
    other = np.roll(known, -1)[np.searchsorted(known, names)] if len(known) > 1 else names + 1
    many = len(models) - 1 if paired else len(models)
    right, wrong = ([values] * many for values in (names, other))
    lower, upper = ([names, *wrong], [other, *right]) if paired else (wrong, right)
    rows = np.vstack([seen, *(np.column_stack([names, *side]) for side in (lower, upper))])
    size, share = len(names), 1 / len(names)
    ends = [np.zeros(len(rows)) for _ in range(2)]
    ends[0][len(seen) : len(seen) + size] = share
    ends[1][len(seen) + size :] = share
    columns = list(rows.T)
    counts = np.concatenate([counts, np.zeros(2 * size)])
    return Table(columns[0], columns[1:], counts, (ends[0], ends[1]))


def _of_same(labels: Values, models: Sequence[Values]) -> Table:
    """Two rows more, on which the later models, or the first, predict what belongs to another row.

    The two rows are the most unlike: nothing is known of a change that was never seen.
    """
    at, other = _extremes(models[0], labels)
    first, label = models[0], labels[at : at + 1]
    right, wrong = first[at : at + 1], first[other : other + 1]
    if isinstance(wrong, np.ndarray) and wrong.ndim == 2:
        # sums over tokens: so many of the other's as this row has
        wrong = wrong * (labels[at] / labels[other])  # pyright: ignore[reportOperatorIssue]
    joined = [_joined(first, right, wrong), *(_joined(rows, wrong, right) for rows in models[1:])]
    counts = np.concatenate([np.ones(len(labels)), np.zeros(2)])
    return Table(_joined(labels, label, label), joined, counts, None)


def _extremes(predictions: Values, labels: Values) -> tuple[int, int]:
    """The two rows with the most different predictions.

    Of texts, one that has most words of its label, and one that has fewest words of that label.
    """
    if isinstance(predictions, np.ndarray):
        values = predictions[:, 1] / labels if predictions.ndim == 2 else predictions
        return int(values.argmin()), int(values.argmax())
    overlap = [_shared_words(*pair) for pair in zip(predictions, labels, strict=True)]
    at = int(np.argmax(overlap))
    return at, int(np.argmin([_shared_words(text, labels[at]) for text in predictions]))


def _shared_words(text: str, label: str) -> float:
    words, wanted = set(text.split()), set(label.split())
    return len(words & wanted) / max(1, len(words | wanted))


def _equal(one: Values, other: Values) -> bool:
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    return list(one) == list(other)


def _joined(rows: Values, *more: Values) -> Values:
    if isinstance(rows, np.ndarray):
        return np.concatenate([rows, *map(np.asarray, more)])
    return [*rows, *(str(text) for texts in more for text in texts)]
