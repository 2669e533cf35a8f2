"""ROUGE-L as rouge-score and chrF as sacrebleu count them by default, from sums over rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from headcount.tasks.formulas import ratio

ORDERS = 6
"""Characters of the longest n-grams of chrF."""
RECALL = 2**2
"""How much more recall counts in chrF than precision: beta, squared."""
TEXTS = 2**14
"""Pairs of texts whose counts are remembered: a score and its interval count the same texts."""


@lru_cache(maxsize=TEXTS)
def rouge_l(hypothesis: str, reference: str) -> float:
    """F of the longest common subsequence of words: lower case, a-z and 0-9 only, no stems.

    >>> round(rouge_l("The cat sat.", "the cat lay down"), 4)
    0.5714
    """
    words, wanted = (
        re.sub("[^a-z0-9]+", " ", text.lower()).split() for text in (hypothesis, reference)
    )
    return 2 * common_words(words, wanted) / max(1, len(words) + len(wanted))


def common_words(first: Sequence[str], second: Sequence[str]) -> int:
    """How long the longest common subsequence is, a machine word of the table at a time.

    >>> common_words("a b c d".split(), "b x d a".split())
    2
    """
    places: dict[str, int] = {}
    for number, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << number
    all_ones = (1 << len(first)) - 1
    column = all_ones  # a bit is 0 where the subsequence grows (Hyyrö 2004)
    for word in second:
        matches = column & places.get(word, 0)
        column = (column + matches) | (column - matches)
    return len(first) - (column & all_ones).bit_count()


def rouge_rows(hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """(row, 2) ROUGE-L, and 1."""
    pairs = zip(hypotheses, references, strict=True)
    return np.array([(rouge_l(*pair), 1.0) for pair in pairs]).reshape(-1, 2)


def character_counts(hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """(row, 3 * order) n-grams of characters in the hypothesis, the reference, and in both.

    Spaces do not count, and n-grams of a hypothesis only where the reference has such long ones.
    """
    pairs = zip(hypotheses, references, strict=True)
    return np.array([_character_counts(*pair) for pair in pairs]).reshape(-1, 3 * ORDERS)


@lru_cache(maxsize=TEXTS)
def _character_counts(hypothesis: str, reference: str) -> tuple[int, ...]:
    plain = ["".join(text.split()) for text in (hypothesis, reference)]
    counts: list[int] = []
    for order in range(1, ORDERS + 1):
        mine, wanted = (
            Counter(text[at : at + order] for at in range(len(text) - order + 1)) for text in plain
        )
        known = mine if wanted else Counter()
        counts += [known.total(), wanted.total(), (known & wanted).total()]
    return tuple(counts)


def chrf_of_counts(sums: np.ndarray) -> np.ndarray:
    """chrF, 0 to 100, of summed counts (resample, 3 * order) -> (resample,)."""
    mine, wanted, both = np.moveaxis(sums.reshape(len(sums), ORDERS, 3), 2, 0)
    orders = ((mine > 0) & (wanted > 0)).sum(1)  # longer ones than the texts do not count
    precision, recall = (ratio(ratio(both, all_).sum(1), orders) for all_ in (mine, wanted))
    return 100 * ratio((1 + RECALL) * precision * recall, RECALL * precision + recall)
