from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UnsupportedError, UsageError
from headcount.heads import Head
from headcount.likeness.attention import attention_of, name_broken_head, padding_masks
from headcount.models.find import layout
from models.zoo import build, removed

IDS = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])


def test_every_input_without_its_padding():
    model = build("bert", num_hidden_layers=2)
    batch = {"input_ids": IDS, "attention_mask": MASK}
    first, second = attention_of(model, batch, layout(model))
    assert [run.shape for run in first["encoder"]] == [(8, 4, 4)]
    assert [run.shape for run in second["encoder"]] == [(8, 2, 2)]
    alone = next(iter(attention_of(model, {"input_ids": IDS[1:, :2]}, layout(model))))
    torch.testing.assert_close(second["encoder"][0], alone["encoder"][0], rtol=1e-4, atol=1e-5)


def test_padding_at_the_start_or_in_the_middle_is_cut_away_too():
    model = build("bert", num_hidden_layers=1)
    for mask in ([[0, 0, 1, 1], [1, 1, 1, 1]], [[1, 0, 0, 1], [1, 1, 1, 1]]):
        batch = {"input_ids": IDS, "attention_mask": torch.tensor(mask)}
        first, second = attention_of(model, batch, layout(model))
        assert first["encoder"][0].shape == (4, 2, 2)
        assert second["encoder"][0].shape == (4, 4, 4)


def test_masks_of_an_encoder_decoder():
    model = build("t5")
    labels = torch.tensor([[3, 4, -100], [5, -100, -100]])
    masks = padding_masks(model, {"input_ids": IDS, "attention_mask": MASK, "labels": labels})
    assert all(mask is MASK for mask in (*masks["encoder"], masks["cross"][1]))
    assert masks["decoder"][0].tolist() == [[1, 1, 0], [1, 0, 0]]


def test_what_cannot_be_cut_is_refused():
    model = build("bert", num_hidden_layers=1)
    with pytest.raises(UsageError, match=r"attention_mask has the shape \(2, 1, 4, 4\)"):
        padding_masks(model, {"attention_mask": torch.ones(2, 1, 4, 4)})
    batch = {"input_ids": IDS, "attention_mask": torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]])}
    with pytest.raises(UsageError, match="padding only"):
        list(attention_of(model, batch, layout(model)))
    _, _, empty = removed("bert", "all emptied")
    with pytest.raises((UsageError, UnsupportedError), match="two heads or more"):
        list(attention_of(empty, {"input_ids": IDS}, layout(empty)))


def test_a_broken_head_is_named_by_its_first_number():
    _, mask, small = removed("bert", "uneven")
    own = layout(small)
    attention = torch.ones(len(own), 3, 3)
    assert name_broken_head({"encoder": [attention]}, own) is None
    attention[0, 1, 1] = torch.nan
    first = min(mask.kept, key=lambda head: (head.layer, head.index))
    assert name_broken_head({"encoder": [attention]}, own) == Head(*first)
