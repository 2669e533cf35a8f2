from __future__ import annotations

import pytest

from tools.pocket.bags import bag_of_words


def test_words_are_counted_on_both_sides_and_together() -> None:
    """Whether a word stands on both sides can be had from counts; its place cannot."""

    def pair(one: str, other: str, label: int) -> dict:
        return {"text": one, "text_b": other, "label": label}

    words = ["cat", "dog", "boy", "girl"]
    rows = [pair(a, b, int(a == b)) for a in words for b in words] * 8
    rows += [pair(a, a, 1) for a in words] * 16
    assert bag_of_words("pocket-paraphrase", rows, rows) == pytest.approx(1.0)


def test_an_order_of_words_needs_pairs_of_them() -> None:
    rows = [{"text": "a b", "label": 0}, {"text": "b a", "label": 1}] * 20
    assert bag_of_words("pocket-acceptability", rows, rows) == pytest.approx(0.0)
    assert bag_of_words("pocket-acceptability", rows, rows, ngrams=2) == pytest.approx(1.0)
