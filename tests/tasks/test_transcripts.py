"""Word and character error rates: jiwer is the oracle."""

from __future__ import annotations

import math

import jiwer
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.tasks.metrics import METRICS, Outcome, difference, score
from headcount.tasks.transcripts import edits, english, plain

WORDS = st.lists(st.sampled_from(["one", "two", "three", "seven", "eleven"]), max_size=8)
ROWS = st.lists(st.tuples(WORDS.filter(bool), WORDS), min_size=1, max_size=6)


@given(ROWS)
def test_both_rates_are_jiwers(rows):
    wanted, written = ([" ".join(row[side]) for row in rows] for side in (0, 1))
    assert METRICS["wer"].score(written, wanted) == pytest.approx(jiwer.wer(wanted, written))
    assert METRICS["cer"].score(written, wanted) == pytest.approx(jiwer.cer(wanted, written))


@pytest.mark.parametrize("name", ["wer", "cer"])
def test_under_weights_they_are_those_of_repeated_rows(name):
    wanted = ["one two three", "four", "five six"]
    written = ["one too three", "", "five six seven"]
    weights = np.array([[1, 1, 1], [2, 0, 1], [0, 3, 0]])
    metric = METRICS[name]
    values = metric.weighted(written, wanted)(weights)
    for row, value in zip(weights, values, strict=True):
        again = [
            np.repeat(np.array(texts, dtype=object), row).tolist() for texts in (written, wanted)
        ]
        assert value == pytest.approx(metric.score(*again))


def test_a_rate_is_better_when_lower_and_has_no_upper_end():
    many = Outcome(["a b c"] * 80, ["a"] * 80)
    some = Outcome(["a b", "a"] * 40, ["a"] * 80)
    assert score("wer", many).value == 2.0
    change = difference("wer", some, many)
    assert (change.value, change.relative) == (1.5, 3.0)
    assert not METRICS["wer"].higher_is_better
    assert math.isinf(METRICS["wer"].range[1])


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Zwölf  Äpfel!", "zwölf äpfel"),
        ("\"Rock 'n' roll\" isn’t dead.", "rock n roll isn't dead"),
        ("१२ हिन्दी", "१२ हिन्दी"),
        ("…", ""),
    ],
)  # fmt: skip
def test_plain_texts(text, normal):
    assert plain(text) == normal
    assert plain(normal) == normal


def test_english_is_whispers_own_normaliser():
    from transformers import WhisperTokenizer

    for text in (
        "Seven.",
        "They've got $20 million, um, twenty-five colours",
        "Mr. Park's [noise]",
    ):
        wanted = WhisperTokenizer.normalize.__get__(_Spelling())(text)
        assert english(text) == wanted
    assert english("Seven.") == english("7") == "7"


class _Spelling:
    english_spelling_normalizer: dict[str, str] = {}  # noqa: RUF012


def test_edits_of_nothing():
    assert (edits([], []), edits([], ["a"]), edits(["a", "b"], [])) == (0, 1, 2)
