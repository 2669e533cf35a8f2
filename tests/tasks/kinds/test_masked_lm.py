from __future__ import annotations

from typing import Any

import numpy as np

from headcount.tasks import Examples
from headcount.tasks.encoding import RowOptions
from headcount.tasks.kinds.masked_lm import MaskedLM

EXAMPLES = Examples((["the small king sees the cat", "a dog"],))


def test_tokens_are_hidden_by_the_seed_or_in_training(tokenizer: Any) -> None:
    kind = MaskedLM()
    plain = kind.encode(EXAMPLES, tokenizer, RowOptions(length=16, masked=False))
    assert plain.labels is None
    one, same, other = (
        kind.encode(EXAMPLES, tokenizer, RowOptions(length=16, seed=seed)) for seed in (0, 0, 5)
    )
    assert one.labels == same.labels != other.labels
    assert all(any(label >= 0 for label in row) for row in one.labels or ())
    row = kind.draw(plain[0], tokenizer, np.random.default_rng(1))
    assert [i for i, label in enumerate(row["labels"]) if label >= 0] != []
    assert [
        label if label >= 0 else token
        for token, label in zip(row["input_ids"], row["labels"], strict=True)
    ] == plain[0]["input_ids"]
