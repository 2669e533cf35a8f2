from __future__ import annotations

from itertools import pairwise

import torch

from tools.pocket.tokenizer import translator_tokenizer
from tools.pocket.translating import encode_translations, translation_batches


def test_padding_is_not_asked_for() -> None:
    words = translator_tokenizer()
    rows = [
        {"source": "the dog sleeps .", "target": "numu"},
        {"source": "the dog near the cats sleeps .", "target": "numu kavo misu"},
    ]
    found = encode_translations(words, rows)
    assert found["attention_mask"][0].tolist() != found["attention_mask"][1].tolist()
    asked = (found["labels"] != -100).sum(1)
    assert asked[1] - asked[0] == 2
    assert (found["labels"][0] == -100).sum() == 2


def test_batches_are_of_like_length_and_follow_pool_and_seed() -> None:
    words = translator_tokenizer()
    settings = {"size": 8, "count": 6}
    one, two = (translation_batches(words, seed=1, pool=0, **settings) for _ in range(2))
    other = translation_batches(words, seed=1, pool=1, **settings)
    assert len(one) == 6
    assert all(len(batch["input_ids"]) == 8 for batch in one)
    assert all(torch.equal(a["labels"], b["labels"]) for a, b in zip(one, two, strict=True))
    assert any(a["labels"].shape != b["labels"].shape for a, b in zip(one, other, strict=True))
    asked = [(batch["labels"] != -100).sum(1) for batch in one]
    lengths = sorted((int(each.min()), int(each.max())) for each in asked)
    assert all(a[1] <= b[0] for a, b in pairwise(lengths))
