"""The rows of a metric drawn again: what every interval and every probability is made from.

Rows of classes are counted, equal ones together, and what was not among them is a row on which one
more answer is wrong, or right. Rows that are numbers (correlations, perplexity, BLEU) are each
their own; the most telling of them comes once more. Where two models say the same in every such
row, the unseen row is one on which the one gives the answer that belongs to another row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.statistics import Sides, draw_sides, most_telling, widening

if TYPE_CHECKING:
    from headcount.tasks.metrics import Metric


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, those that were not seen among them, and how often each counts."""

    labels: Any
    models: Sequence[Any]
    """What each model said, row by row."""
    counts: np.ndarray
    unseen: tuple[np.ndarray, np.ndarray] | None
    """(row,) what is added for the lower and for the upper end; None: the most telling row."""


def draw(
    metric: Metric, labels: Any, models: Sequence[Any], *, paired: bool, bootstrap: int, seed: int
) -> Sides:
    """Scores in all draws: (draw, 1) the models' mean, or (draw, 2) the first and the others' mean.

    Several models are seeds: they are drawn as rows are, the same rows for all of them.
    """
    table = table_of(metric, labels, models, paired=paired)
    each = [metric.weighted(said, table.labels) for said in table.models]
    first = int(paired)

    def together(weights: np.ndarray) -> np.ndarray:
        return np.column_stack([score(weights) for score in each])

    def target(weights: np.ndarray) -> np.ndarray:
        found = together(weights)
        return found[:, first:].mean(1) - (found[:, 0] if paired else 0.0)

    lower, upper = table.unseen or most_telling(target, table.counts)
    found = draw_sides(together, table.counts, lower, upper, bootstrap=bootstrap, seed=seed)
    point = together(table.counts[None].astype(float))[0]
    wide = 1.0 if metric.classes else widening(len(labels))
    sides = []
    for side in (found.lower, found.upper):
        # rounding and widening go past what the metric can be
        values = (point + wide * (side - point)).clip(*metric.range)
        sides.append(_over_seeds(values, first, seed).clip(*metric.range))
    return Sides(*sides)


def _over_seeds(values: np.ndarray, first: int, seed: int) -> np.ndarray:
    """(draw, model) -> (draw, first + 1): the mean of the models after the first, drawn again."""
    many = values.shape[1] - first
    if many == 1:
        return values
    drawn = np.random.default_rng((seed, 2)).integers(many, size=(len(values), many))
    after = values[:, first:]
    mean = after.mean(1)
    # a draw of few is less spread than they are
    spread = np.take_along_axis(after, drawn, axis=1).mean(1) - mean
    return np.column_stack([values[:, :first], mean + spread * np.sqrt(many / (many - 1))])


def table_of(metric: Metric, labels: Any, models: Sequence[Any], *, paired: bool) -> Table:
    """The rows to draw from."""
    if metric.classes:
        return _of_classes(np.asarray(labels), [np.asarray(said) for said in models], paired)
    same = paired and all(_equal(models[0], said) for said in models[1:])
    if same:
        return _of_same(labels, models)
    return Table(labels, models, np.ones(len(labels)), None)


def _of_classes(labels: np.ndarray, models: Sequence[np.ndarray], paired: bool) -> Table:
    """Equal rows as one, and for every class a row that is wrong after, or before, or at all."""
    seen, counts = np.unique(np.column_stack([labels, *models]), axis=0, return_counts=True)
    names = np.unique(labels)
    known = np.unique(seen)
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


def _of_same(labels: Any, models: Sequence[Any]) -> Table:
    """Two rows more: one on which the models after give another row's answer, or the one before.

    The two rows are the most unlike: nothing is known of a change that was never seen.
    """
    at, other = _extremes(models[0], labels)
    own = models[0][at : at + 1]
    wrong = models[0][other : other + 1]
    if np.ndim(own) == 2:  # sums over tokens: so many of the other's as this row has
        wrong = wrong * (labels[at] / labels[other])
    asked = labels[at : at + 1]
    said = [_joined(models[0], own, wrong), *(_joined(each, wrong, own) for each in models[1:])]
    counts = np.concatenate([np.ones(len(labels)), np.zeros(2)])
    return Table(_joined(labels, asked, asked), said, counts, None)


def _extremes(said: Any, labels: Any) -> tuple[int, int]:
    """The two rows whose answers are the furthest apart; of sentences, the first that differ."""
    if not isinstance(said, np.ndarray):
        return 0, next((at for at, each in enumerate(said) if each != said[0]), 0)
    values = said[:, 1] / labels if said.ndim == 2 else said
    return int(values.argmin()), int(values.argmax())


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    return list(one) == list(other)


def _joined(rows: Any, *more: Any) -> Any:
    if isinstance(rows, np.ndarray):
        return np.concatenate([rows, *more])
    return [*rows, *(each for some in more for each in some)]
