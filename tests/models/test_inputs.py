from __future__ import annotations

import pytest
import torch

from headcount.errors import UnsupportedError
from headcount.models.inputs import model_inputs
from models.zoo import build

BATCH = {"input_ids": torch.tensor([[5, 6]]), "labels": torch.tensor([[7, 8]])}


def test_labels_and_strangers_are_left_out():
    model = build("gpt2", n_layer=1)
    found = model_inputs(model, {**BATCH, "weight": torch.ones(1)}, "causal-lm")
    assert set(found) == {"input_ids", "use_cache"}
    assert found["use_cache"] is False
    assert set(model_inputs(build("bert", num_hidden_layers=1), BATCH, "classification")) == {
        "input_ids"
    }


def test_a_translator_reads_its_labels_one_step_later():
    found = model_inputs(build("t5", num_layers=1, num_decoder_layers=1), BATCH, "translation")
    assert found["decoder_input_ids"].tolist() == [[0, 7]]
    with pytest.raises(UnsupportedError, match="cannot be trained to translate"):
        model_inputs(build("bert", num_hidden_layers=1), BATCH, "translation")
