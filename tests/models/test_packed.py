"""torch's attention with its projections apart, against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from headcount.base.errors import UnsupportedError
from headcount.models.packed import Unpacked, unpack
from models.test_modules import INPUTS, encoder


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("masked", ["", "padding", "causal"])
def test_unpacked_answers_as_torch_does(batch_first, norm_first, masked):
    model = encoder(batch_first=batch_first, norm_first=norm_first)
    inputs = dict(INPUTS)
    length = 6 if batch_first else 2
    if masked == "padding":
        batch = 2 if batch_first else 6
        inputs["src_key_padding_mask"] = torch.zeros(batch, length, dtype=torch.bool)
        inputs["src_key_padding_mask"][-1, -1] = True
    elif masked == "causal":
        inputs["mask"] = nn.Transformer.generate_square_subsequent_mask(length)
        inputs["is_causal"] = True
    with torch.no_grad():
        assert torch.allclose(model(**inputs), unpack(model)(**inputs), atol=1e-5)
    assert not any(isinstance(part, Unpacked) for part in model.modules())


def test_attention_weights_and_crossing_are_those_of_torch():
    torch.manual_seed(0)
    packed = nn.MultiheadAttention(16, 2, kdim=8, vdim=12, batch_first=True)
    own = Unpacked(packed, "attention")
    query, key, value = (
        torch.randn(2, length, width) for length, width in ((3, 16), (5, 8), (5, 12))
    )
    mask = torch.rand(4, 3, 5) < 0.3
    mask[..., 0] = False
    for average in (True, False):
        for left, right in zip(
            packed(query, key, value, attn_mask=mask, average_attn_weights=average),
            own(query, key, value, attn_mask=mask, average_attn_weights=average),
            strict=True,
        ):
            assert torch.allclose(left, right, atol=1e-6)
    with pytest.raises(UnsupportedError, match="a key of its own"):
        unpack(nn.Sequential(nn.MultiheadAttention(16, 2, add_zero_attn=True)))
