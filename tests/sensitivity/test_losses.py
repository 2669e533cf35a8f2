from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from headcount.errors import UsageError
from headcount.sensitivity.losses import example_losses, kind_of


def test_each_loss_is_the_mean_over_the_examples_own_labels():
    """Against torch's mean over one example at a time."""
    torch.manual_seed(0)
    logits = torch.randn(5, 7, 11)
    labels = torch.randint(0, 11, (5, 7))
    labels[1, 3:] = -100
    labels[4] = -100
    for kind, shift in (("masked-lm", 0), ("translation", 0), ("causal-lm", 1)):
        losses, counts = example_losses(kind, logits, labels)
        assert counts.tolist() == [True, True, True, True, False]
        for row in range(4):
            words, wanted = logits[row, : 7 - shift], labels[row, shift:]
            expected = torch.nn.functional.cross_entropy(words, wanted)
            assert losses[row].item() == pytest.approx(expected.item(), rel=1e-6)
        assert losses[4] == 0


def test_a_score():
    losses, counts = example_losses(
        "regression", torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 2.5])
    )
    assert losses.tolist() == [4.0, 0.25]
    assert counts.all()


def test_what_a_model_predicts_is_seen_from_its_answer():
    model = BertForSequenceClassification(
        BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1)
    )
    assert kind_of(model, torch.zeros(2, 3), torch.tensor([0, 1])) == "classification"
    assert kind_of(model, torch.zeros(2, 1), torch.tensor([0, 1])) == "regression"
    assert kind_of(model, torch.zeros(2, 3, 9), torch.zeros(2, 3)) == "masked-lm"


def test_an_unknown_kind():
    with pytest.raises(UsageError, match="Did you mean 'regression'"):
        example_losses("regresion", torch.zeros(1, 1), torch.zeros(1))


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
def test_labels_that_are_not_of_the_answers(kind, logits, labels, said):
    with pytest.raises(UsageError, match=said):
        example_losses(kind, torch.zeros(logits), labels)
