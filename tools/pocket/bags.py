"""The bag-of-words baseline: what counting words gives on a pocket task."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from headcount.tasks.metrics import get_metric
from headcount.tasks.pocket.world import POCKET_TASKS


def bag_of_words(
    task: str, train: list[dict[str, Any]], dev: list[dict[str, Any]], *, ngrams: int = 1
) -> float:
    """The task's metric on `dev` of a linear model on word (or n-gram) counts.

    A pair gives the counts of each side, and for every word how often both sides have it and by
    how much they differ: all that a model can know that ignores positions.
    """
    about = POCKET_TASKS[task]
    counter = CountVectorizer(ngram_range=(1, ngrams), token_pattern=r"\S+", lowercase=False)
    counter.fit([row[field] for field in about.fields for row in train])
    inputs, tests = (_features(counter, about.fields, rows) for rows in (train, dev))
    labels, truth = (np.array([row["label"] for row in rows]) for rows in (train, dev))
    if about.kind == "regression":
        predicted = Ridge(alpha=10.0).fit(inputs, labels).predict(tests)
    else:
        model = LogisticRegression(C=0.3, max_iter=5000).fit(inputs, labels)
        predicted = model.predict(tests)
    return float(get_metric(about.metric).score(np.asarray(predicted), truth))


def _features(counter: CountVectorizer, fields: tuple[str, ...], rows: list[dict[str, Any]]) -> Any:
    """(text, feature) counts, sparse."""
    sides = [counter.transform([row[field] for row in rows]).tocsr() for field in fields]
    if len(sides) == 1:
        return sides[0]
    shared, apart = sides[0].minimum(sides[1]), abs(sides[0] - sides[1])
    sums = [sparse.csr_matrix(part.sum(axis=1)) for part in (shared, apart)]
    return sparse.hstack([*sides, shared, apart, *sums]).tocsr()
