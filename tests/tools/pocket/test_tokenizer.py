from __future__ import annotations

import pytest
from transformers import AutoTokenizer

from headcount.models.shipped import locate
from headcount.tasks.pocket import POCKET_TASKS, examples
from headcount.tasks.pocket.lexicon import ENGLISH
from headcount.tasks.pocket.translation import vocabulary
from tools.pocket.tokenizer import bert_tokenizer, translator_tokenizer


@pytest.mark.parametrize("task", list(POCKET_TASKS))
def test_every_word_is_known(task: str) -> None:
    name = "translator" if POCKET_TASKS[task].kind == "translation" else "bert"
    tokenizer = AutoTokenizer.from_pretrained(locate(f"pocket-{name}"))
    for row in examples(task, "test", 1000):
        texts = [row[field] for field in POCKET_TASKS[task].fields if row[field] is not None]
        ids = tokenizer(*texts, truncation=False)["input_ids"]
        assert tokenizer.unk_token_id not in ids
        assert len(ids) <= tokenizer.model_max_length


def test_pairs_get_separators_and_segments() -> None:
    tokenizer = bert_tokenizer()
    batch = tokenizer("the dog sleeps .", "The cat .")
    assert tokenizer.convert_ids_to_tokens(batch["input_ids"]) == (
        ["[CLS]", "the", "dog", "sleep", "##s", ".", "[SEP]", "the", "cat", ".", "[SEP]"]
    )
    assert batch["token_type_ids"] == [0] * 7 + [1] * 4
    assert tokenizer("the zebra .")["input_ids"].count(tokenizer.unk_token_id) == 1


def test_translations_end_with_their_mark() -> None:
    tokenizer = translator_tokenizer()
    ids = tokenizer("the dog sleeps .")["input_ids"]
    assert ids[-1] == tokenizer.eos_token_id
    assert tokenizer.decode(ids, skip_special_tokens=True) == "the dog sleeps ."


def test_shipped_tokenizers_are_the_built_ones() -> None:
    for name, built in (("bert", bert_tokenizer()), ("translator", translator_tokenizer())):
        shipped = AutoTokenizer.from_pretrained(locate(f"pocket-{name}"))
        assert shipped.get_vocab() == built.get_vocab()
        assert shipped.special_tokens_map == built.special_tokens_map


def test_the_vocabulary_is_small() -> None:
    assert 100 <= len(ENGLISH) <= 200
    assert not set(ENGLISH) & set(vocabulary()) - {"."}
