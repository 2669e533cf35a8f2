"""ROUGE-L against rouge-score and chrF against sacrebleu, on texts of all kinds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import CHRF  # pyright: ignore[reportPrivateImportUsage]

from headcount.tasks.metrics import get_metric
from headcount.tasks.text_scores import common_words, rouge_l

words = st.sampled_from(["the", "cat", "Cat", "sat.", "on", "mat", "won't", "größe", "7", "!", ""])
texts = st.lists(words, max_size=12).map(" ".join)
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=6)


@settings(max_examples=60)
@given(pairs)
def test_rouge_l_is_that_of_rouge_score(rows: list[tuple[str, str]]) -> None:
    scorer = RougeScorer(["rougeL"])
    wanted = [scorer.score(reference, said)["rougeL"].fmeasure for said, reference in rows]
    assert [rouge_l(*row) for row in rows] == pytest.approx(wanted)
    said, references = zip(*rows, strict=True)
    assert get_metric("rouge_l").score(said, references) == pytest.approx(np.mean(wanted))


@settings(max_examples=60)
@given(pairs)
def test_chrf_is_that_of_sacrebleu(rows: list[tuple[str, str]]) -> None:
    said, references = map(list, zip(*rows, strict=True))
    wanted = CHRF().corpus_score(said, [references]).score
    assert get_metric("chrf").score(said, references) == pytest.approx(wanted)


def test_small_cases_by_hand() -> None:
    assert rouge_l("a b c d", "a c e") == pytest.approx(2 * 2 / 7)
    assert (rouge_l("", "a"), rouge_l("a", "."), rouge_l("A-b", "a b")) == (0, 0, 1)
    # 1-grams: 2 of 2 and 2 of 3; 2-grams: 1 of 1 and 1 of 2; no 3-gram in what was said
    precision, recall = 1.0, (2 / 3 + 1 / 2) / 2
    by_hand = 100 * 5 * precision * recall / (4 * precision + recall)
    assert get_metric("chrf").score(["a b"], ["abc"]) == pytest.approx(by_hand)


def test_the_common_part_is_that_of_the_plain_table() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        first, second = ([str(n) for n in rng.integers(5, size=rng.integers(90))] for _ in "ab")
        table = np.zeros((len(first) + 1, len(second) + 1), dtype=int)
        for i, word in enumerate(first):
            for j, other in enumerate(second):
                best = max(table[i, j + 1], table[i + 1, j])
                table[i + 1, j + 1] = table[i, j] + 1 if word == other else best
        assert common_words(first, second) == table[-1, -1]
