from __future__ import annotations

from typing import Any

import torch

from headcount.tasks.pocket import examples
from headcount.tasks.pocket.corpus import APART, TOGETHER
from headcount.tasks.pocket.masking import IGNORED, Masking, corpus_batches
from headcount.tasks.pocket.sentiment import VERDICTS
from headcount.tasks.pocket.tokenizer import bert_tokenizer


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


def batch(**more: Any) -> dict[str, torch.Tensor]:
    settings: dict[str, Any] = {"split": "train", "seed": 0, "pool": 0, "size": 600, "count": 1}
    return corpus_batches(bert_tokenizer(), masking=Masking(), **settings, **more)[0]


def test_hidden_words_are_asked_for_and_special_ones_are_not() -> None:
    words, found = bert_tokenizer(), batch()
    hidden = found["input_ids"] == words.mask_token_id
    assert (found["labels"][hidden] != IGNORED).all()
    assert not torch.isin(found["labels"], torch.tensor(words.all_special_ids)).any()
    shown = (found["labels"] != IGNORED) & ~hidden
    assert 0.1 < shown.sum() / (shown | hidden).sum() < 0.3


def test_how_much_is_hidden_does_not_say_what_belongs_together() -> None:
    found = batch()
    asked = (found["labels"] != IGNORED).sum(dim=1).float()
    label = found["next_sentence_label"]
    apart, together = (asked[label == each].mean() for each in (0, 1))
    assert abs(apart - together) < 0.25 * (apart + together)
    assert (asked[label != IGNORED] == 0).float().mean() > 0.3
    assert asked[label == IGNORED].max() > 5


def test_pairs_that_are_apart_can_be_left_out() -> None:
    everything, without = batch(), batch(apart=False)
    apart = (everything["next_sentence_label"] == APART).sum()
    assert apart > 100
    assert len(without["input_ids"]) == 600 - apart
    assert not (without["next_sentence_label"] == APART).any()
