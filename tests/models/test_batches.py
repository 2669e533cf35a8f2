from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.models.batches import batches_for, counted_tokens, model_inputs
from models.zoo import build


def test_what_the_model_does_not_name_is_left_out_and_labels_stand_apart():
    model = build("bert", num_hidden_layers=1)
    ids = torch.tensor([[5, 6, 7]])
    batch = {"input_ids": ids, "labels": torch.tensor([1]), "sentence": ["abc"]}
    (found,) = batches_for(model, [batch])
    assert set(found.inputs) == {"input_ids"}
    assert found.labels.tolist() == [1]
    assert found.examples is None
    (found,) = batches_for(model, [batch | {"examples": torch.tensor([3])}])
    assert set(found.inputs) == {"input_ids"}
    assert found.examples.tolist() == [3]


def test_labels_and_strangers_are_no_inputs_and_nothing_is_cached():
    batch = {"input_ids": torch.tensor([[5, 6]]), "labels": torch.tensor([[7, 8]])}
    found = model_inputs(build("gpt2", n_layer=1), {**batch, "weight": torch.ones(1)})
    assert set(found) == {"input_ids", "use_cache"}
    assert found["use_cache"] is False
    assert set(model_inputs(build("bert", num_hidden_layers=1), batch)) == {"input_ids"}


def test_a_decoder_without_tokens_reads_the_labels_or_the_source_again():
    model = build("t5", num_layers=1, num_decoder_layers=1)
    ids = torch.tensor([[5, 6, 7, 0]])
    source = {"input_ids": ids, "attention_mask": torch.tensor([[1, 1, 1, 0]])}
    (found,) = batches_for(model, [source | {"labels": torch.tensor([[8, 9, -100]])}])
    assert found.inputs["decoder_input_ids"].tolist() == [[0, 8, 9]]
    assert found.inputs["decoder_attention_mask"].tolist() == [[1, 1, 1]]
    (again,) = batches_for(model, [source])
    assert again.labels is None
    assert again.inputs["decoder_input_ids"].tolist() == [[0, 5, 6, 7]]
    assert not again.inputs["use_cache"]


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
