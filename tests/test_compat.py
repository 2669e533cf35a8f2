"""The imports of transformers 4, held against what masking the same heads gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel
from transformers.pytorch_utils import Conv1D

import headcount as hc
from headcount.compat import (
    find_pruneable_heads_and_indices,
    prune_conv1d_layer,
    prune_layer,
    prune_linear_layer,
)


def test_old_code_prunes_a_layer_as_removal_does() -> None:
    """The body of transformers 4's `BertAttention.prune_heads`, once and once more."""
    torch.manual_seed(0)
    config = BertConfig(num_hidden_layers=1, hidden_size=48, num_attention_heads=4, vocab_size=30)
    model = BertModel(config).eval()
    small = hc.remove(model, {0: [0, 1, 3]})
    attention = model.encoder.layer[0].attention
    gone: set[int] = set()
    for heads in ([1], [0, 1, 3]):
        left, index = find_pruneable_heads_and_indices(heads, 4 - len(gone), 12, gone)
        for name in ("query", "key", "value"):
            setattr(attention.self, name, prune_linear_layer(getattr(attention.self, name), index))
        attention.output.dense = prune_linear_layer(attention.output.dense, index, dim=1)
        gone |= left
    pruned = small.encoder.layer[0].attention
    for ours, old in (
        (pruned.self.query, attention.self.query),
        (pruned.self.key, attention.self.key),
        (pruned.self.value, attention.self.value),
        (pruned.output.dense, attention.output.dense),
    ):
        assert torch.equal(ours.weight, old.weight)
        assert torch.equal(ours.bias, old.bias)


def test_heads_are_counted_in_the_numbers_of_the_whole_layer() -> None:
    heads, index = find_pruneable_heads_and_indices({2, 0}, 3, 2, {0})
    assert (heads, index.tolist()) == ({2}, [0, 1, 4, 5])
    assert index.dtype == torch.int64


@pytest.mark.parametrize("dim", [0, 1])
def test_linear(dim: int) -> None:
    layer, index = nn.Linear(6, 5).to(torch.bfloat16), torch.tensor([0, 3])
    small = prune_linear_layer(layer, index, dim)
    x = torch.randn(2, 6, dtype=torch.bfloat16)
    if dim == 0:
        assert torch.equal(small(x), layer(x)[:, index])
    else:
        assert small.in_features == 2
        assert torch.equal(small.weight, layer.weight[:, index])
        assert torch.equal(small.bias, layer.bias)
    assert small.weight.dtype == torch.bfloat16
    assert prune_linear_layer(nn.Linear(6, 5, bias=False), index, dim).bias is None


def test_conv1d_and_either() -> None:
    layer, index = Conv1D(5, 6), torch.tensor([1, 4])
    x = torch.randn(2, 6)
    assert torch.allclose(prune_conv1d_layer(layer, index)(x), layer(x)[:, index])
    assert torch.equal(prune_layer(layer, index, 0).weight, layer.weight[index])
    assert prune_layer(nn.Linear(6, 5), index).weight.shape == (2, 6)
    with pytest.raises(ValueError, match="ReLU"):
        prune_layer(nn.ReLU(), index)  # pyright: ignore[reportArgumentType]
