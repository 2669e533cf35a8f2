"""Two checkpoints of one architecture, or a clear refusal."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.costs.pairs import mask_between
from headcount.heads import Mask
from headcount.models.find import layout_of, sites_of, unwrap
from headcount.models.sites import Site

NAMES = ("first", "second")


def open_pair(
    first: nn.Module, second: nn.Module, *, same_heads: bool = True
) -> tuple[PreTrainedModel, PreTrainedModel]:
    """The two, without what stands on top where that is not the same.

    Without `same_heads` the second may have fewer heads.
    """
    pair = [_pretrained(model) for model in (first, second)]
    kinds = [str(model.config.model_type) for model in pair]
    sites = [sites_of(model) for model in pair]  # before anything else: there may be no heads
    if kinds[0] != kinds[1]:
        raise UsageError(
            f"The first model is a '{kinds[0]}' and the second a '{kinds[1]}': only two "
            "checkpoints of one architecture can be compared."
        )
    if type(pair[0]).__name__ != type(pair[1]).__name__:
        pair = [_base(model) for model in pair]
        sites = [sites_of(model) for model in pair]
    if same_heads:
        _require_same_heads(*sites)
    _require_same_sizes(pair)
    for name, model in zip(NAMES, pair, strict=True):
        _require_numbers(name, model)
    return pair[0], pair[1]


def mask_of_pair(model: nn.Module, pruned: nn.Module) -> Mask:
    """The heads that the second model still has, or why it is not the first one pruned."""
    return mask_between(*open_pair(model, pruned, same_heads=False))


def _pretrained(model: nn.Module) -> PreTrainedModel:
    bare = unwrap(model)
    if not isinstance(bare, PreTrainedModel):
        raise UsageError(f"hc.transfer compares transformers models, not {type(bare).__name__}.")
    return bare


def _base(model: PreTrainedModel) -> PreTrainedModel:
    base: Any = model.base_model
    return base


def _require_same_heads(first: list[Site], second: list[Site]) -> None:
    left, right = layout_of(first), layout_of(second)
    if left != right:
        raise UsageError(
            f"The two models have different heads: {left!r} and {right!r}. Give two checkpoints "
            "of one architecture."
        )
    for one, other in zip(first, second, strict=True):
        if one.head_dim != other.head_dim:
            raise UsageError(
                f"The heads of {one.stack} layer {one.layer} are {one.head_dim} wide in the first "
                f"model and {other.head_dim} in the second."
            )


def _require_same_sizes(pair: list[PreTrainedModel]) -> None:
    """Equal vocabularies and widths, seen from the embeddings where there are any."""
    shapes: list[Any] = []
    for model in pair:
        try:
            table: Any = model.get_input_embeddings()
        except NotImplementedError:  # several towers
            return
        shapes.append(tuple(getattr(getattr(table, "weight", None), "shape", ())))
    if shapes[0] == shapes[1]:
        return
    if len(shapes[0]) == len(shapes[1]) == 2 and shapes[0][0] != shapes[1][0]:
        raise UsageError(
            f"The two models have different vocabularies, of {shapes[0][0]} and {shapes[1][0]} "
            "tokens, so the same tokens mean other things to them."
        )
    raise UsageError(
        f"The two models have different widths: their embeddings are {shapes[0]} and {shapes[1]}."
    )


def _require_numbers(name: str, model: PreTrainedModel) -> None:
    for path, parameter in model.named_parameters():
        if not torch.isfinite(parameter).all():
            raise UsageError(
                f"The weights in {path} of the {name} model are not all numbers (NaN or infinite)."
            )
