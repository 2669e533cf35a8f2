"""Entities in sentences of tags, counted as seqeval does by default; tags are joined by spaces.

B- begins an entity, I- goes on with it; an I- that goes on with nothing begins one, too. E- and S-
end one, as seqeval reads them without a scheme. Every other tag is outside.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headcount.tasks.formulas import ratio

OUTSIDE = "O"
INSIDE = tuple("BIES")


def is_entity(tag: str) -> bool:
    """Whether it is a tag of an entity, such as B-person."""
    return tag[:1] in INSIDE and tag[1:2] in ("", "-")


def entities(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """(type, first word, last word) of every entity.

    >>> sorted(entities("B-per I-per O I-loc B-loc".split()))
    [('loc', 3, 3), ('loc', 4, 4), ('per', 0, 1)]
    """
    spans: set[tuple[str, int, int]] = set()
    before, last_type, begin = OUTSIDE, "", 0
    for number, tag in enumerate([*tags, OUTSIDE]):
        mark, kind = (tag[0], tag[2:] or "_") if is_entity(tag) else (OUTSIDE, "_")
        changed = kind != last_type
        if before != OUTSIDE and (before in "ES" or mark in "BSO" or changed):
            spans.add((last_type, begin, number - 1))
        if mark != OUTSIDE and (mark in "BS" or before in "OES" or changed):
            begin = number
        before, last_type = mark, kind
    return spans


def entity_counts(predictions: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """(row, 3) entities that are right, predicted and labelled."""
    pairs = [
        (entities(predicted.split(" ")), entities(labelled.split(" ")))
        for predicted, labelled in zip(predictions, labels, strict=True)
    ]
    counts = [(len(mine & right), len(mine), len(right)) for mine, right in pairs]
    return np.array(counts, dtype=float).reshape(-1, 3)


def f1_of_counts(sums: np.ndarray) -> np.ndarray:
    """F1 over all entities (resample,); undefined where no word is of an entity."""
    values = ratio(2 * sums[:, 0], sums[:, 1] + sums[:, 2])
    return np.where(sums[:, 2] > 0, values, np.nan)


def word_counts(predictions: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """(row, 2) words with the right tag, and all words that have one."""
    counts = []
    for predicted, labelled in zip(predictions, labels, strict=True):
        mine, right = predicted.split(" "), labelled.split(" ")
        counts.append((sum(a == b for a, b in zip(mine, right, strict=False)), len(right)))
    return np.array(counts, dtype=float).reshape(-1, 2)
