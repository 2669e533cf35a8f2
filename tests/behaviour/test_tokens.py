from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UnsupportedError
from headcount.behaviour.tokens import marks_of
from headcount.tasks.loading import load_tokenizer
from headcount.tasks.vocabulary import train_tokenizer
from models.zoo import build


def test_special_tokens_are_the_tokenizers_but_for_words_it_does_not_know() -> None:
    tokenizer = load_tokenizer("pocket")
    marks = marks_of(build("bert"), tokenizer)
    assert {tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id} <= marks.special
    assert not {tokenizer.unk_token_id, tokenizer.mask_token_id} & marks.special


def test_punctuation_is_what_is_written_with_points_alone() -> None:
    tokenizer = train_tokenizer(["a b , c . d ! e (f)"] * 3, 300)
    words = tokenizer.get_vocab()
    marks = marks_of(build("bert"), tokenizer)
    assert {words[point] for point in ",.!()"} <= marks.punctuation
    assert words["a"] not in marks.punctuation


def test_without_a_tokenizer_the_config_names_them() -> None:
    model = build("llama")
    model.config.eos_token_id = [2, 3]
    assert {2, 3} <= marks_of(model, None).special


def test_separators_are_special_tokens_where_there_are_some() -> None:
    tokenizer = load_tokenizer("pocket")
    model = build("bert")
    cls, sep, pad = tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id
    point = tokenizer.convert_tokens_to_ids(".")
    marks = marks_of(model, tokenizer)
    batch = {"input_ids": torch.tensor([[cls, 9, point, sep, pad]])}
    batch["attention_mask"] = torch.tensor([[1, 1, 1, 1, 0]])
    marked = marks.with_separators(model, [batch])
    assert marked.separators == {"encoder": "special", "decoder": "punctuation"}
    side = marked.sides(model, batch)["encoder"]
    assert side.separators.tolist() == [[True, False, False, True, False]]
    assert side.text.tolist() == [[False, True, True, False, False]]
    pair = {"input_ids": torch.tensor([[cls, 9, sep, 9, sep]])}
    assert marks.with_separators(model, [pair]).separators["decoder"] == "special"
    bare = {"input_ids": torch.tensor([[cls, 9, point, 9]])}
    marked = marks.with_separators(model, [bare])
    assert marked.separators["encoder"] == "punctuation"
    assert marked.sides(model, bare)["encoder"].separators.tolist() == [[False, False, True, False]]
    assert (
        marks_of(build("gpt2"), None).with_separators(model, [bare]).separators["encoder"] is None
    )


def test_a_mask_of_another_shape_is_refused() -> None:
    batch = {"input_ids": torch.tensor([[5, 6]]), "attention_mask": torch.ones(1, 3)}
    with pytest.raises(UnsupportedError, match="padding cannot be told"):
        marks_of(build("bert"), None).sides(build("bert"), batch)
