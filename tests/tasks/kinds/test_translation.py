from __future__ import annotations

from typing import Any

import pytest
import torch

from headcount.base.errors import UnsupportedError
from headcount.models.batches import ModelBatch
from headcount.tasks import Examples
from headcount.tasks.encoding import RowOptions
from headcount.tasks.kinds.translation import Translation
from models.zoo import build

KIND = Translation()
BATCH = {"input_ids": torch.tensor([[5, 6]]), "labels": torch.tensor([[7, 8]])}


def test_a_translator_reads_its_labels_one_step_later() -> None:
    found = KIND.inputs(build("t5", num_layers=1, num_decoder_layers=1), BATCH)
    assert found["decoder_input_ids"].tolist() == [[0, 7]]
    with pytest.raises(UnsupportedError, match="cannot be trained to translate"):
        KIND.inputs(build("bert", num_hidden_layers=1), BATCH)


def test_labels_are_the_targets_tokens(tokenizer: Any) -> None:
    rows = KIND.encode(Examples((["the cat"], ["a dog"])), tokenizer, RowOptions(length=8))
    assert rows.columns["input_ids"] == [tokenizer("the cat")["input_ids"]]
    assert rows.labels == [tokenizer("a dog")["input_ids"]]


def test_labels_are_drawn_where_the_decoder_has_tokens() -> None:
    masks = {"attention_mask": torch.ones(1, 3), "decoder_attention_mask": torch.tensor([[1, 0]])}
    inputs = masks | {"decoder_input_ids": torch.tensor([[0, 7]])}
    generator = torch.Generator().manual_seed(0)
    drawn = KIND.sample_labels(torch.zeros(1, 2, 5), ModelBatch(inputs, None), generator)
    assert (drawn[0, 0] >= 0, drawn[0, 1].item()) == (True, -100)
