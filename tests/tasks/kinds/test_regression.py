from __future__ import annotations

import pytest
import torch

from headcount.models.batches import ModelBatch
from headcount.tasks.kinds.regression import Regression

KIND = Regression()


def test_the_loss_is_the_squared_error_and_a_blank_row_has_none() -> None:
    answers, wanted = torch.tensor([[1.0], [2.0], [7.0]]), torch.tensor([3.0, 2.5, -100.0])
    batch = ModelBatch({}, wanted)
    assert KIND.losses(answers, batch).tolist() == [[4.0], [0.25], [0.0]]
    assert KIND.losses(answers, batch, total=True).item() == 4.25
    assert KIND.losses(answers, batch, smoothing=0.3, total=True).item() == 4.25
    assert KIND.counts(wanted).sum() == 2
    assert KIND.losses(answers.bfloat16(), batch).dtype == torch.float32


def test_labels_are_drawn_with_the_variance_the_loss_stands_for() -> None:
    answers = torch.full((4000, 1), 3.0)
    drawn = KIND.sample_labels(answers, ModelBatch({}, None), torch.Generator().manual_seed(0))
    assert drawn.shape == (4000,)
    assert drawn.mean().item() == pytest.approx(3.0, abs=0.1)
    # -log p of a normal distribution is the squared error over twice its variance
    assert 1 / (2 * drawn.var().item()) == pytest.approx(KIND.nats, rel=0.1)
