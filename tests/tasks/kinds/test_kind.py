from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from headcount.base.errors import UsageError
from headcount.models.batches import ModelBatch
from headcount.tasks.kinds import task_kind
from headcount.tasks.kinds.kind import draw_classes, entropies, entropy_sum, where_labelled


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


@pytest.mark.parametrize("kind", ["masked-lm", "causal-lm", "text-to-text", "translation"])
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


def test_entropies_are_torchs_own_and_0_where_nothing_counts() -> None:
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[-100, 2, 1], [3, -100, -100]])
    want = functional.cross_entropy(logits.view(6, 4), labels.view(6), reduction="none")
    torch.testing.assert_close(entropies(logits, labels).view(6), want)
    for few in (False, True):
        torch.testing.assert_close(entropy_sum(logits, labels, 0.0, few=few), want.sum())
    assert entropies(logits.bfloat16(), labels).dtype == torch.float32
    assert entropies(logits.double(), labels).dtype == torch.float64


def test_words_are_drawn_from_the_prediction_where_they_are_asked_for() -> None:
    logits = torch.zeros(2, 3, 4)
    logits[..., 2] = 50.0
    drawn = draw_classes(logits, torch.Generator().manual_seed(0))
    assert drawn.tolist() == [[2, 2, 2]] * 2
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    found = where_labelled(drawn, ModelBatch({"attention_mask": mask}, None))
    assert found.tolist() == [[2, 2, 2], [2, 2, -100]]
    labels = torch.tensor([[-100, 0, 0], [0, -100, -100]])
    found = where_labelled(drawn, ModelBatch({"attention_mask": mask}, labels))
    assert found.tolist() == [[-100, 2, 2], [2, -100, -100]]
    assert where_labelled(drawn, ModelBatch({}, None)) is drawn


def test_token_scores_count_by_row() -> None:
    logits = torch.zeros(2, 3, 4)
    logits[0, 1, 2] = logits[1, 0, 1] = 9.0
    labels = torch.tensor([[-100, 2, 1], [3, -100, -100]])
    kind = task_kind("masked-lm")
    scores = kind.read(logits, ModelBatch({}, labels))
    assert scores.dtype == torch.float64
    assert scores[:, 0].tolist() == [1, 0]
    assert scores[:, 2].tolist() == [2, 1]
    want = functional.cross_entropy(logits[0], labels[0], reduction="sum", ignore_index=-100)
    assert scores[0, 1].item() == pytest.approx(want.item(), rel=1e-5)
    rows: Any = None
    outcome, table = kind.score(scores.numpy(), rows)
    assert outcome.labels.tolist() == table["tokens"].tolist() == [2, 1]
    losses, counts = kind.kept_losses(table, rows)
    assert (losses == scores[:, 1].numpy()).all()
    assert counts.tolist() == [2.0, 1.0]
