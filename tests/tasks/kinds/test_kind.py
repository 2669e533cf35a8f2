from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch
from headcount.tasks.kinds import task_kind


@pytest.mark.parametrize(
    ("kind", "logits", "labels", "said"),
    [
        ("masked-lm", (2, 9, 5), torch.zeros(2, 4).long(), "gives 2 x 9 answers, .* 2 x 4 labels"),
        ("classification", (2, 3), torch.zeros(2, 4).long(), "gives 2 answers, .* 2 x 4 labels"),
        ("regression", (2, 1), torch.zeros(2, 4), "gives 2 x 1 answers, .* 2 x 4 labels"),
        ("classification", (2, 3), torch.tensor([0, 3]), "A label is 3, .* knows 0 to 2"),
        ("classification", (2, 3), torch.tensor([0, -1]), "A label is -1, .* knows 0 to 2"),
        ("classification", (2, 3), torch.zeros(2), "whole numbers as labels, not torch.float32"),
    ],
)
def test_labels_that_are_not_of_the_answers(kind, logits, labels, said) -> None:
    with pytest.raises(UsageError, match=said):
        task_kind(kind).require_labels(torch.zeros(logits), labels)


@pytest.mark.parametrize("kind", ["masked-lm", "causal-lm", "translation"])
def test_language_losses_skip_what_is_ignored(kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 5, 7, generator=generator)
    labels = torch.randint(7, (2, 5), generator=generator)
    labels[0, 3:] = -100
    seen, wanted = (logits[:, :-1], labels[:, 1:]) if kind == "causal-lm" else (logits, labels)
    want = functional.cross_entropy(seen.reshape(-1, 7), wanted.reshape(-1), ignore_index=-100)
    of, batch = task_kind(kind), ModelBatch({}, labels)
    count = of.counts(labels).sum()
    torch.testing.assert_close(of.losses(logits, batch, total=True) / count, want)
    torch.testing.assert_close(of.losses(logits, batch).sum() / count, want)
    smooth = of.losses(logits, batch, smoothing=0.2, total=True)
    flat = seen.reshape(-1, 7), wanted.reshape(-1)
    want = functional.cross_entropy(*flat, ignore_index=-100, label_smoothing=0.2)
    torch.testing.assert_close(smooth / count, want)
