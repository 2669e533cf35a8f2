"""Texts of speech: how they are normalised, and the errors of words and letters in them.

word errors = least number of words to put in, leave out or replace / words of the reference
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from headcount.tasks.formulas import ratio


def plain(text: str) -> str:
    """Lower case, without punctuation or symbols; apostrophes within words stay.

    >>> plain("  Don't -- PANIC, it's 7 o'clock! ")
    "don't panic it's 7 o'clock"
    """
    text = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    letters = (
        letter if unicodedata.category(letter)[0] in "LMN" or letter == "'" else " "
        for letter in text
    )
    words = "".join(letters).split()
    return " ".join(word for word in (word.strip("'") for word in words) if word)


def english(text: str) -> str:
    """As Whisper's authors compare English: digits for numbers, no fillers, full forms.

    >>> english("Well, um, it's twenty-one.")
    'well it is 21'
    """
    return _whisper_english()(text)


@cache
def _whisper_english() -> Callable[[str], str]:
    from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

    return EnglishTextNormalizer({})  # British spellings stay: their table comes with some models


NORMALIZERS: dict[str, Callable[[str], str]] = {"plain": plain, "english": english}
"""What is done to texts before they are compared."""


def edits(wanted: Sequence[str], written: Sequence[str]) -> int:
    """The least number of items to put in, leave out or replace (Levenshtein's distance).

    >>> edits("kitten", "sitting"), edits("one two".split(), ["two"])
    (3, 1)
    """
    number = {item: at for at, item in enumerate({*wanted, *written})}
    other = np.array([number[item] for item in written], dtype=np.int64)
    steps = np.arange(len(other) + 1)
    row = steps
    for item in wanted:
        least = row + 1
        least[1:] = np.minimum(least[1:], row[:-1] + (other != number[item]))
        # an item put in costs 1 more than what stands left of it
        row = np.minimum.accumulate(least - steps) + steps
    return int(row[-1])


def word_errors(predictions: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """(row, 2) edits of words, and words of the reference."""
    return _errors(predictions, labels, str.split)


def letter_errors(predictions: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """(row, 2) edits of letters, and letters of the reference, spaces among them."""
    return _errors(predictions, labels, list)


def _errors(
    predictions: Sequence[str], labels: Sequence[str], items: Callable[[str], list[str]]
) -> np.ndarray:
    pairs = [(items(label), items(text)) for text, label in zip(predictions, labels, strict=True)]
    return np.array([[edits(*pair), len(pair[0])] for pair in pairs], dtype=float).reshape(-1, 2)


def rate_of_sums(sums: np.ndarray) -> np.ndarray:
    """Errors by items, of summed counts (resample, 2)."""
    return ratio(sums[:, 0], sums[:, 1])
