from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from headcount.heads import Head, Mask
from headcount.models.find import layout
from headcount.models.fingerprint import (
    config_of,
    differences,
    identity,
    tokenizer_fingerprint,
    weights_fingerprint,
)
from headcount.models.load import load
from headcount.models.remove import remove
from headcount.models.shipped import locate

from .zoo import build


@pytest.fixture
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(locate("pocket-bert"))


def test_a_saved_and_loaded_model_is_the_same(tmp_path: Any, tokenizer: Any) -> None:
    model = build("bert")
    model.save_pretrained(tmp_path / "one")
    tokenizer.save_pretrained(tmp_path / "one")
    again = load(tmp_path / "one")
    words = AutoTokenizer.from_pretrained(tmp_path / "one")
    assert differences(identity(model, tokenizer), identity(again, words)) == ""


def test_a_saved_and_loaded_pruned_model_is_the_same(tmp_path: Any) -> None:
    model = build("bert")
    small = remove(model, Mask.full(layout(model)).drop([Head("encoder", 0, 1)]))
    small.save_pretrained(tmp_path / "one")
    assert differences(identity(small), identity(load(tmp_path / "one"))) == ""


def test_every_weight_counts() -> None:
    model = build("bert")
    before = weights_fingerprint(model)
    with torch.no_grad():
        list(model.parameters())[-1].view(-1)[-1] += 1
    assert weights_fingerprint(model) != before


def test_the_same_bytes_in_another_shape_or_dtype_are_another_model() -> None:
    wide, tall = torch.nn.Linear(2, 3, bias=False), torch.nn.Linear(3, 2, bias=False)
    with torch.no_grad():
        tall.weight.copy_(wide.weight.reshape(2, 3))
    assert weights_fingerprint(wide) != weights_fingerprint(tall)
    zeros = torch.nn.Linear(2, 3, bias=False)
    torch.nn.init.zeros_(zeros.weight)
    half = copy.deepcopy(zeros).to(torch.bfloat16)
    assert weights_fingerprint(zeros) != weights_fingerprint(half)


def test_the_activation_is_named_when_it_differs() -> None:
    model, other = build("bert"), build("bert")
    other.config.hidden_act = "relu"
    told = differences(identity(model), identity(other))
    assert told == "config.hidden_act was gelu, now relu"


def test_where_a_model_lies_is_no_difference() -> None:
    model, other = build("bert"), build("bert")
    other.config._name_or_path = "elsewhere"
    other.config.dtype = "bfloat16"
    assert config_of(model) == config_of(other)


def test_a_call_does_not_change_a_tokenizer_but_a_setting_does(tokenizer: Any) -> None:
    before = tokenizer_fingerprint(tokenizer)
    tokenizer(["a cat", "a"], truncation=True, max_length=4, padding=True)
    assert tokenizer_fingerprint(tokenizer) == before
    tokenizer.padding_side = "left"
    assert tokenizer_fingerprint(tokenizer) != before
    tokenizer.padding_side = "right"
    tokenizer.add_tokens(["quince"])
    assert tokenizer_fingerprint(tokenizer) != before


def test_long_differences_are_cut() -> None:
    told = differences({}, {f"n{i}": "x" * 100 for i in range(7)})
    assert told.count("was not there, now ") == 5
    assert told.endswith("…; and 2 more")
    assert differences({"a": (1, 2), "b": {}}, {"a": [1, 2], "b": {}}) == ""
