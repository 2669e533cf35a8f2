from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from headcount.models.batches import ModelBatch
from headcount.tasks.kinds import entropy


def test_entropies_are_torchs_own_and_0_where_nothing_counts() -> None:
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[-100, 2, 1], [3, -100, -100]])
    want = functional.cross_entropy(logits.view(6, 4), labels.view(6), reduction="none")
    torch.testing.assert_close(entropy.entropies(logits, labels).view(6), want)
    for few in (False, True):
        torch.testing.assert_close(entropy.entropy_sum(logits, labels, 0.0, few=few), want.sum())
    assert entropy.entropies(logits.bfloat16(), labels).dtype == torch.float32
    assert entropy.entropies(logits.double(), labels).dtype == torch.float64


def test_words_are_drawn_from_the_prediction_where_they_are_asked_for() -> None:
    logits = torch.zeros(2, 3, 4)
    logits[..., 2] = 50.0
    drawn = entropy.draw_classes(logits, torch.Generator().manual_seed(0))
    assert drawn.tolist() == [[2, 2, 2]] * 2
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    found = entropy.where_asked(drawn, ModelBatch({"attention_mask": mask}, None))
    assert found.tolist() == [[2, 2, 2], [2, 2, -100]]
    labels = torch.tensor([[-100, 0, 0], [0, -100, -100]])
    found = entropy.where_asked(drawn, ModelBatch({"attention_mask": mask}, labels))
    assert found.tolist() == [[-100, 2, 2], [2, -100, -100]]
    assert entropy.where_asked(drawn, ModelBatch({}, None)) is drawn


def test_token_scores_count_by_row() -> None:
    logits = torch.zeros(2, 3, 4)
    logits[0, 1, 2] = logits[1, 0, 1] = 9.0
    labels = torch.tensor([[-100, 2, 1], [3, -100, -100]])
    scores = entropy.token_scores(logits, labels)
    assert scores.dtype == torch.float64
    assert scores[:, 0].tolist() == [1, 0]
    assert scores[:, 2].tolist() == [2, 1]
    want = functional.cross_entropy(logits[0], labels[0], reduction="sum", ignore_index=-100)
    assert scores[0, 1].item() == pytest.approx(want.item(), rel=1e-5)
    outcome, table = entropy.token_outcome(scores.numpy())
    assert outcome.labels.tolist() == table["tokens"].tolist() == [2, 1]
    losses, counts = entropy.token_losses(table)
    assert (losses == scores[:, 1].numpy()).all()
    assert counts.tolist() == [2.0, 1.0]
