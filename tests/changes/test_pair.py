from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from transformers import BertForMaskedLM, ResNetConfig, ResNetModel

from headcount.base.errors import UnsupportedError, UsageError
from headcount.changes.pair import open_pair
from models.zoo import build


def test_two_of_one_class_stay_as_they_are():
    first, second = build("bert"), build("bert", seed=1)
    assert open_pair(first, second) == (first, second)


def test_what_stands_on_top_is_left_out_where_it_differs():
    first = build("bert")
    second = BertForMaskedLM(first.config)
    left, right = open_pair(first, second)
    assert left is first.bert
    assert right is second.bert


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (("bert", {}), ("roberta", {}), "a 'bert' and the second a 'roberta'"),
        (("bert", {}), ("bert", {"num_hidden_layers": 3}), "different heads"),
        (("bert", {}), ("bert", {"num_attention_heads": 8}), "different heads"),
        (("llama", {}), ("llama", {"num_key_value_heads": 4}), "different heads"),
        (("llama", {}), ("llama", {"head_dim": 16}), "8 wide in the first model and 16"),
        (("bert", {}), ("bert", {"vocab_size": 62}), "vocabularies, of 61 and 62 tokens"),
        (("gpt2", {}), ("gpt2", {"vocab_size": 62}), "vocabularies, of 61 and 62 tokens"),
        (("llama", {}), ("llama", {"hidden_size": 64}), "different widths"),
    ],
)
def test_two_different_models(first, second, said):
    with pytest.raises(UsageError, match=said):
        open_pair(build(first[0], **first[1]), build(second[0], **second[1]))


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(which, bad):
    pair = [build("bert"), build("bert", seed=1)]
    with torch.no_grad():
        pair[which].bert.encoder.layer[1].output.dense.weight[0, 0] = bad
    name = ("first", "second")[which]
    with pytest.raises(UsageError, match=rf"layer\.1\.output\.dense\.weight of the {name} model"):
        open_pair(*pair)


def test_no_attention():
    tiny = ResNetModel(ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1]))
    with pytest.raises(UnsupportedError, match="no attention heads"):
        open_pair(tiny, copy.deepcopy(tiny))


def test_no_transformers_model():
    with pytest.raises(UsageError, match="not Linear"):
        open_pair(nn.Linear(2, 2), build("bert"))


def test_models_of_several_towers_have_no_one_embedding():
    assert len(open_pair(build("clip"), build("clip", seed=1))) == 2
