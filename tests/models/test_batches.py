from __future__ import annotations

import pytest
import torch

from headcount.errors import UsageError
from headcount.models.batches import batches_for, counted_tokens
from models.zoo import build


def test_what_the_model_does_not_name_is_left_out_and_labels_stand_apart():
    model = build("bert", num_hidden_layers=1)
    ids = torch.tensor([[5, 6, 7]])
    batch = {"input_ids": ids, "labels": torch.tensor([1]), "sentence": ["abc"]}
    ((inputs, labels),) = batches_for(model, [batch])
    assert set(inputs) == {"input_ids"}
    assert labels.tolist() == [1]


def test_a_decoder_without_tokens_reads_the_labels_or_the_source_again():
    model = build("t5", num_layers=1, num_decoder_layers=1)
    ids = torch.tensor([[5, 6, 7, 0]])
    source = {"input_ids": ids, "attention_mask": torch.tensor([[1, 1, 1, 0]])}
    ((inputs, _),) = batches_for(model, [source | {"labels": torch.tensor([[8, 9, -100]])}])
    assert inputs["decoder_input_ids"].tolist() == [[0, 8, 9]]
    assert inputs["decoder_attention_mask"].tolist() == [[1, 1, 1]]
    ((again, labels),) = batches_for(model, [source])
    assert labels is None
    assert again["decoder_input_ids"].tolist() == [[0, 5, 6, 7]]
    assert not again["use_cache"]


def test_no_data_and_no_batches_are_refused():
    model = build("bert", num_hidden_layers=1)
    with pytest.raises(UsageError, match="not a single row"):
        list(batches_for(model, []))
    with pytest.raises(UsageError, match="a dict of tensors, not list"):
        list(batches_for(model, [[1, 2]]))


def test_tokens_that_count_are_those_of_the_stack():
    own, decoder = torch.tensor([[1, 1, 0]]), torch.tensor([[1, 0]])
    inputs = {"attention_mask": own, "decoder_attention_mask": decoder, "decoder_input_ids": own}
    assert counted_tokens(inputs, "encoder", 3).tolist() == [True, True, False]
    assert counted_tokens(inputs, "cross", 2).tolist() == [True, False]
    assert counted_tokens(inputs, "decoder", 3) is None
    assert counted_tokens({"attention_mask": own}, "decoder", 3).tolist() == [True, True, False]
