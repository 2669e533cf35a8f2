from __future__ import annotations

from headcount.tasks.pocket import examples
from headcount.tasks.pocket.corpus import TOGETHER
from headcount.tasks.pocket.sentiment import VERDICTS


def test_half_of_the_pairs_that_are_asked_about_belong_together() -> None:
    rows = examples("pocket-corpus", "train", 3000)
    pairs = [row for row in rows if row["together"] is not None]
    assert 0.55 < len(pairs) / len(rows) < 0.65
    assert all(row["text_b"] is not None for row in pairs)
    together = [row for row in pairs if row["together"] == TOGETHER]
    assert 0.45 < len(together) / len(pairs) < 0.55
    assert any(row["text"] == row["text_b"] for row in together)
    assert not any(row["text"] == row["text_b"] for row in pairs if row["together"] != TOGETHER)


def test_an_opinion_has_its_verdict_and_is_not_asked_about() -> None:
    rows = examples("pocket-corpus", "train", 3000)
    opinions = [row for row in rows if row["together"] is None and row["text_b"] is not None]
    assert 0.2 < len(opinions) / len(rows) < 0.3
    assert {row["text_b"] for row in opinions} == {text for both in VERDICTS for text in both}
