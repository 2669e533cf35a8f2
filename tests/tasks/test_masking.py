from __future__ import annotations

import pytest
import torch
from transformers import AutoTokenizer

from headcount.base.errors import UsageError
from headcount.models.shipped import locate
from headcount.tasks.masking import ordinary_tokens, random_tokens


def test_random_rows_have_uniform_lengths_and_the_tokenizers_frame() -> None:
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    rows = random_tokens(tokenizer, 2000, 4, 9, torch.Generator().manual_seed(0))
    counts = [int((rows.lengths == n).sum()) for n in range(4, 10)]
    assert sum(counts) == 2000
    assert max(counts) - min(counts) < 100
    special = set(tokenizer.all_special_ids)
    for ids in rows.columns["input_ids"]:
        assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
        assert not special & set(ids[1:-1])
    used = {token for ids in rows.columns["input_ids"] for token in ids[1:-1]}
    assert used == set(ordinary_tokens(tokenizer).tolist())


def test_random_rows_end_as_the_translators_do_and_follow_the_generator() -> None:
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-translator"))
    first, again, other = (
        random_tokens(tokenizer, 5, 3, 6, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert all(ids[-1] == tokenizer.eos_token_id for ids in first.columns["input_ids"])
    assert first.columns == again.columns
    assert first.columns != other.columns


@pytest.mark.parametrize(("count", "low", "high"), [(0, 4, 9), (1, 2, 9), (1, 9, 4)])
def test_impossible_random_rows_are_refused(count: int, low: int, high: int) -> None:
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    with pytest.raises(UsageError, match=r"[Rr]andom row"):
        random_tokens(tokenizer, count, low, high, torch.Generator())
