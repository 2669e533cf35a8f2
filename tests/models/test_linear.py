from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headcount.models.linear import has_bias, read_rows, weight_of, write_rows


@pytest.mark.parametrize(
    "layer", [nn.Linear(3, 2), nn.Linear(3, 2, bias=False), Conv1D(2, 3)], ids=repr
)
def test_rows_are_what_the_layer_computes_with_and_come_back(layer):
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape))
        rows = read_rows(layer)
        x = torch.randn(5, 3)
        seen = torch.cat([x, torch.ones(5, 1)], 1) if has_bias(layer) else x
        torch.testing.assert_close(seen.double() @ rows, layer(x).double(), rtol=1e-5, atol=1e-6)
        assert weight_of(layer).shape == (3, 2)
        write_rows(layer, 2 * rows)
        torch.testing.assert_close(read_rows(layer), 2 * rows)
