from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from headcount.base.errors import UsageError
from headcount.tasks import open_task
from headcount.tasks.vocabulary import tokenizer_for, train_tokenizer

TEXTS = ["Ein Hund läuft.", "a dog runs in the park, quickly!", "the dog and the other dog"] * 3


def test_any_text_comes_back_whole_and_ends_in_the_end_token() -> None:
    tokenizer = train_tokenizer(TEXTS, 290)
    assert len(tokenizer) == 290
    assert tokenizer.pad_token_id == 0
    for text in [*TEXTS, "never seen: 犬 🐕"]:
        ids = tokenizer(text)["input_ids"]
        assert ids[-1] == tokenizer.eos_token_id
        assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert len(tokenizer("the dog")["input_ids"]) < len("the dog")


def test_it_is_the_same_again_and_after_saving(tmp_path: Path) -> None:
    first, second = train_tokenizer(TEXTS, 280), train_tokenizer(TEXTS, 280)
    assert first.get_vocab() == second.get_vocab()
    first.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded("the dog läuft")["input_ids"] == first("the dog läuft")["input_ids"]
    assert loaded.mask_token_id == first.mask_token_id


def test_both_sides_of_a_task_are_learned() -> None:
    tokenizer = tokenizer_for(open_task("pocket-translation", size=50), 400)
    row = open_task("pocket-translation", size=50).load("train").texts
    for column in row:
        assert len(tokenizer(column[0])["input_ids"]) < len(str(column[0])) / 2


def test_too_small_a_tokenizer_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 260 tokens, not 100"):
        train_tokenizer(TEXTS, 100)
