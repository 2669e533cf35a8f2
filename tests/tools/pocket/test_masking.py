from __future__ import annotations

from typing import Any

import torch

from headcount.tasks.pocket.corpus import APART
from tools.pocket.masking import IGNORED, Masking, corpus_batches
from tools.pocket.tokenizer import bert_tokenizer


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


def batch(**more: Any) -> dict[str, torch.Tensor]:
    settings: dict[str, Any] = {"split": "train", "seed": 0, "pool": 0, "size": 600, "count": 1}
    return corpus_batches(bert_tokenizer(), masking=Masking(), **settings, **more)[0]


def test_pairs_that_are_apart_can_be_left_out() -> None:
    everything, without = batch(), batch(apart=False)
    apart = (everything["next_sentence_label"] == APART).sum()
    assert apart > 100
    assert len(without["input_ids"]) == 600 - apart
    assert not (without["next_sentence_label"] == APART).any()
