"""torch's own attention with its projections apart, so that heads can be gated and removed.

`nn.MultiheadAttention` keeps the weights of queries, keys and values in one parameter and calls
no output projection: no hook reaches its heads. A copy of the model with `Unpacked` in its place
gives the same answers, and is found, gated and cut like any other model.
"""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

from headcount.base.errors import UnsupportedError
from headcount.models.door import require_model

Model = TypeVar("Model", bound=nn.Module)


class Unpacked(nn.Module):
    """`nn.MultiheadAttention` with a linear layer for each projection; called in the same way."""

    in_proj_bias = None
    """What torch's encoder layers ask for before they take a path that knows no hooks."""
    _qkv_same_embed_dim = False
    q_proj: nn.Linear
    k_proj: nn.Linear
    v_proj: nn.Linear

    def __init__(self, packed: nn.MultiheadAttention, path: str) -> None:
        super().__init__()
        if packed.bias_k is not None or packed.add_zero_attn:
            raise UnsupportedError(f"{path} attends to a key of its own, which no head can lose.")
        self.embed_dim, self.num_heads = packed.embed_dim, packed.num_heads
        self.head_dim, self.dropout = packed.head_dim, packed.dropout
        self.batch_first = packed.batch_first
        whole = packed.in_proj_weight
        weights = [packed.q_proj_weight, packed.k_proj_weight, packed.v_proj_weight]
        rows = whole.chunk(3) if whole is not None else weights
        bias = packed.in_proj_bias
        biases = bias.chunk(3) if bias is not None else (None, None, None)
        for name, weight, part in zip(("q", "k", "v"), rows, biases, strict=True):
            setattr(self, f"{name}_proj", _linear(weight, part))
        self.out_proj = _linear(packed.out_proj.weight, packed.out_proj.bias)
        self.train(packed.training)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(output, attention weights), as `nn.MultiheadAttention` gives them."""
        single = query.ndim == 2
        if single:
            query, key, value = (part[None] for part in (query, key, value))
        elif not self.batch_first:
            query, key, value = (part.transpose(0, 1) for part in (query, key, value))
        batch, length, heads = query.shape[0], query.shape[1], self.num_heads
        if not heads:
            out, weights = self.out_proj(query.new_zeros(batch, length, 0)), None
        else:
            projected = (self.q_proj(query), self.k_proj(key), self.v_proj(value))
            q, k, v = (
                states.unflatten(-1, (heads, self.head_dim)).transpose(1, 2) for states in projected
            )
            scores = q @ k.transpose(-1, -2) * self.head_dim**-0.5
            for mask in self._masks(attn_mask, key_padding_mask, batch):
                hidden = mask if mask.dtype == torch.bool else None
                scores = scores + mask if hidden is None else scores.masked_fill(hidden, -torch.inf)
            weights = scores.softmax(-1)
            kept = nn.functional.dropout(weights, self.dropout, self.training)
            out = self.out_proj((kept @ v).transpose(1, 2).flatten(2))
        if single:
            out = out[0]
        elif not self.batch_first:
            out = out.transpose(0, 1)
        if weights is None or not need_weights:
            return out, None
        weights = weights.mean(1) if average_attn_weights else weights
        return out, weights[0] if single else weights

    def _masks(self, attn_mask: Tensor | None, padding: Tensor | None, batch: int) -> list[Tensor]:
        """Masks that go with scores of (batch, head, query, key)."""
        masks = []
        if attn_mask is not None:
            if attn_mask.ndim == 3:  # one for each example and head of the full module
                attn_mask = attn_mask.unflatten(0, (batch, -1))
                if attn_mask.shape[1] != self.num_heads:
                    attn_mask = attn_mask[:, list(getattr(self, "kept_heads", ()))]
            masks.append(attn_mask)
        if padding is not None:
            masks.append(padding.reshape(batch, 1, 1, -1))
        return masks


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.detach().clone(), requires_grad=weight.requires_grad)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach().clone(), requires_grad=bias.requires_grad)
    return layer


def unpack(model: Model) -> Model:
    """A copy of a model with the projections of every `nn.MultiheadAttention` apart.

    >>> layer = nn.TransformerEncoderLayer(32, 4, batch_first=True)
    >>> unpack(nn.TransformerEncoder(layer, 2)).layers[0].self_attn.q_proj
    Linear(in_features=32, out_features=32, bias=True)
    """
    require_model(model, "hc.unpack")
    unpacked = copy.deepcopy(model)
    unpack_in_place(unpacked)
    return unpacked


def unpack_in_place(model: nn.Module) -> list[str]:
    """The same in the model itself; the paths where something changed."""
    packed = [
        (path, module)
        for path, module in model.named_modules()
        if isinstance(module, nn.MultiheadAttention)
    ]
    for path, module in packed:
        above, _, name = path.rpartition(".")
        setattr(model.get_submodule(above), name, Unpacked(module, path))
    return [path for path, _ in packed]
