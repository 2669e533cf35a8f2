from __future__ import annotations

from typing import Any

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch
from headcount.tasks import Examples
from headcount.tasks.encoding import RowOptions
from headcount.tasks.kinds.causal_lm import CausalLM

KIND = CausalLM()


def test_every_token_but_the_first_is_asked_for() -> None:
    logits, labels = torch.zeros(2, 3, 4), torch.tensor([[0, 1, 2], [0, 1, 2]])
    logits[0, 1, 2] = logits[1, 0, 1] = 9.0
    scores = KIND.read(logits, ModelBatch({}, labels))
    assert scores[:, 2].tolist() == [2, 2]
    assert scores[:, 0].tolist() == [1, 1]
    assert KIND.counts(labels).sum() == 4


def test_a_word_drawn_at_a_token_is_a_label_of_the_next() -> None:
    logits = torch.zeros(1, 3, 4)
    logits[0, torch.arange(3), torch.tensor([3, 1, 2])] = 60.0
    drawn = KIND.sample_labels(logits, ModelBatch({}, None), torch.Generator().manual_seed(0))
    assert drawn[0, 1:].tolist() == [3, 1]
    assert KIND.losses(logits, ModelBatch({}, drawn)).sum() < 1e-6


def test_lines_are_rows_or_blocks_of_one_stream(tokenizer: Any) -> None:
    examples = Examples((["the cat sees the dog", "a king"],))
    lines = KIND.encode(examples, tokenizer, RowOptions(length=16))
    assert len(lines) == 2
    assert lines.labels == lines.columns["input_ids"]
    blocks = KIND.encode(examples, tokenizer, RowOptions(length=4, packed=True))
    assert {len(block) for block in blocks.columns["input_ids"][:-1]} == {4}
    with pytest.raises(UsageError, match="too short"):
        KIND.encode(Examples(([""],)), tokenizer, RowOptions(length=4, packed=True))
