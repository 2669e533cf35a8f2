from __future__ import annotations

import pytest
import torch

from headcount.models.batches import ModelBatch
from headcount.sensitivity.losses import by_example, example_losses
from headcount.tasks.kinds import task_kind


def test_each_loss_is_the_mean_over_the_examples_own_labels():
    """Against torch's mean over one example at a time."""
    torch.manual_seed(0)
    logits = torch.randn(5, 7, 11)
    labels = torch.randint(0, 11, (5, 7))
    labels[1, 3:] = -100
    labels[4] = -100
    for kind, shift in (("masked-lm", 0), ("translation", 0), ("causal-lm", 1)):
        losses, counts = example_losses(task_kind(kind), logits, ModelBatch({}, labels))
        assert counts.tolist() == [True, True, True, True, False]
        for row in range(4):
            words, wanted = logits[row, : 7 - shift], labels[row, shift:]
            expected = torch.nn.functional.cross_entropy(words, wanted)
            assert losses[row].item() == pytest.approx(expected.item(), rel=1e-6)
        assert losses[4] == 0


def test_the_rows_of_an_example_are_added():
    batch = ModelBatch({}, torch.tensor([3.0, 2.5, -100.0, 1.0]), torch.tensor([4, 4, 9, 2]))
    assert by_example(torch.tensor([1, 2, 3, 4]), batch).tolist() == [4, 3, 3]
    answers = torch.tensor([[1.0], [2.0], [5.0], [1.0]])
    losses, counts = example_losses(task_kind("regression"), answers, batch)
    assert losses.tolist() == [0.0, (4.0 + 0.25) / 2, 0.0]
    assert counts.tolist() == [True, True, False]
