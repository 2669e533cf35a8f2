from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from headcount.training.losses import count_labels, loss_sum, token_scores

GENERATOR = torch.Generator().manual_seed(0)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def test_means_are_torchs_own() -> None:
    logits, labels = random(5, 3), torch.tensor([0, 1, 2, 2, 1])
    mean = loss_sum("classification", logits, labels) / count_labels("classification", labels)
    torch.testing.assert_close(mean, functional.cross_entropy(logits, labels))
    smooth = loss_sum("classification", logits, labels, 0.1) / 5
    want = functional.cross_entropy(logits, labels, label_smoothing=0.1)
    torch.testing.assert_close(smooth, want)
    scores, wanted = random(4, 1), random(4)
    mean = loss_sum("regression", scores, wanted) / count_labels("regression", wanted)
    torch.testing.assert_close(mean, functional.mse_loss(scores[:, 0], wanted))


@pytest.mark.parametrize("kind", ["masked-lm", "causal-lm", "translation"])
def test_language_losses_skip_what_is_ignored(kind: Any) -> None:
    logits, labels = random(2, 5, 7), torch.randint(7, (2, 5), generator=GENERATOR)
    labels[0, 3:] = -100
    seen, wanted = (logits[:, :-1], labels[:, 1:]) if kind == "causal-lm" else (logits, labels)
    want = functional.cross_entropy(seen.reshape(-1, 7), wanted.reshape(-1), ignore_index=-100)
    mean = loss_sum(kind, logits, labels) / count_labels(kind, labels)
    torch.testing.assert_close(mean, want)


def test_a_blank_row_changes_nothing() -> None:
    logits, labels = random(3, 2), torch.tensor([1, 0, -100])
    whole = loss_sum("classification", logits, labels)
    torch.testing.assert_close(whole, loss_sum("classification", logits[:2], labels[:2]))
    scores, wanted = random(3, 1), torch.tensor([1.0, 2.0, -100.0])
    whole = loss_sum("regression", scores, wanted)
    torch.testing.assert_close(whole, loss_sum("regression", scores[:2], wanted[:2]))
    assert count_labels("regression", wanted) == 2


def test_token_scores_count_by_row() -> None:
    logits = torch.zeros(2, 3, 4)
    logits[0, 1, 2] = logits[1, 0, 1] = 9.0
    labels = torch.tensor([[-100, 2, 1], [3, -100, -100]])
    scores = token_scores("masked-lm", logits, labels)
    assert scores[:, 0].tolist() == [1, 0]
    assert scores[:, 2].tolist() == [2, 1]
    want = functional.cross_entropy(logits[0], labels[0], reduction="sum", ignore_index=-100)
    assert scores[0, 1].item() == pytest.approx(want.item(), rel=1e-5)
    causal = token_scores("causal-lm", logits, torch.tensor([[0, 1, 2], [0, 1, 2]]))
    assert causal[:, 2].tolist() == [2, 2]
    assert causal[:, 0].tolist() == [1, 1]
