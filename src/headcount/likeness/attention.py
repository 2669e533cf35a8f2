"""One batch through the model: every input's attention as (head, query, key), without padding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from headcount.base.errors import UnsupportedError, UsageError
from headcount.heads import Head, Layout
from headcount.likeness.inputs import Batch
from headcount.models.batches import model_inputs
from headcount.models.capture import AttentionSource, capture
from headcount.models.find import unwrap

Stacks = dict[str, list[Tensor]]
"""stack -> attention (head, query, key), once for each run of a shared layer."""


def attention_of(model: nn.Module, batch: Batch, layout: Layout) -> Iterator[Stacks]:
    """For each input of the batch its attention, layer upon layer; stacks of two heads and more."""
    kept: dict[AttentionSource, Tensor] = {}
    with capture(model, kept.__setitem__), torch.no_grad():
        model(**model_inputs(unwrap(model), batch))
    masks = padding_masks(unwrap(model), batch)
    stacks = {
        stack.name: _runs(kept, stack.name, len(stack.heads))
        for stack in layout.stacks
        if stack.total > 1 and any(source.stack == stack.name for source in kept)
    }
    if not stacks:
        raise UsageError("The inputs reach no stack of this model that has two heads or more.")
    for row in range(len(next(iter(batch.values())))):
        yield {
            name: [_input(name, layers, row, *masks.get(name, (None, None))) for layers in runs]
            for name, runs in stacks.items()
        }


def padding_masks(model: nn.Module, batch: Batch) -> dict[str, tuple[Tensor | None, Tensor | None]]:
    """stack -> (mask of queries, mask of keys), each (input, token), where the batch has one."""
    mask = _mask(batch, "attention_mask")
    if not getattr(model.config, "is_encoder_decoder", False):
        cross = (mask, _mask(batch, "encoder_attention_mask"))
        return {"encoder": (mask, mask), "decoder": (mask, mask), "cross": cross}
    decoder = _mask(batch, "decoder_attention_mask")
    if decoder is None and "labels" in batch and "decoder_input_ids" not in batch:
        # the model reads the labels one step later, so as many tokens count
        decoder = (batch["labels"] != -100).long()
    return {"encoder": (mask, mask), "decoder": (decoder, decoder), "cross": (decoder, mask)}


def name_broken_head(stacks: Mapping[str, list[Tensor]], layout: Layout) -> Head | None:
    """The first head whose attention is not all numbers."""
    for name, runs in stacks.items():
        heads = [layout.original(head) for head in layout if head.stack == name]
        for run in runs:
            bad = (~torch.isfinite(run)).flatten(1).any(1).nonzero()
            if len(bad):
                return heads[int(bad[0])]
    return None


def _mask(batch: Batch, name: str) -> Tensor | None:
    mask = batch.get(name)
    if mask is not None and mask.ndim != 2:
        raise UsageError(
            f"{name} has the shape {tuple(mask.shape)}; to cut padding away it must be "
            "(input, token)."
        )
    return mask


def _runs(kept: dict[AttentionSource, Tensor], stack: str, layers: int) -> list[list[Tensor]]:
    """For each run of shared layers (mostly one) the attention of all layers."""
    uses = {layer: sum(source[:2] == (stack, layer) for source in kept) for layer in range(layers)}
    missing = [layer for layer, count in uses.items() if not count]
    if missing:
        raise UnsupportedError(
            f"These inputs do not reach {stack} layer {missing[0]} ({len(missing)} of {layers} "
            "layers), so its heads cannot be compared."
        )
    if len(set(uses.values())) > 1:
        raise UnsupportedError(f"The {stack}'s layers are shared unevenly: {uses}.")
    runs = [[kept[stack, layer, use] for layer in range(layers)] for use in range(uses[0])]  # pyright: ignore[reportArgumentType]
    for layer in (layer for run in runs for layer in run):
        if layer.shape[2:] != runs[0][0].shape[2:]:
            raise UnsupportedError(
                f"The {stack}'s layers attend over different numbers of tokens "
                f"({tuple(runs[0][0].shape[2:])} and {tuple(layer.shape[2:])}), so their heads "
                "cannot be compared. Pass the part of the model that has heads of one kind."
            )
    return runs


def _input(
    stack: str, layers: list[Tensor], row: int, queries: Tensor | None, keys: Tensor | None
) -> Tensor:
    """(head, query, key) of one input, padding cut away."""
    size = layers[0].shape[2:]
    which = _kept(stack, queries, row, size[0]), _kept(stack, keys, row, size[1])
    return torch.cat([layer[row][:, which[0]][:, :, which[1]] for layer in layers])


def _kept(stack: str, mask: Tensor | None, row: int, size: int) -> slice | Tensor:
    if mask is None:
        return slice(None)
    real = mask[row] != 0
    if len(real) != size:
        if bool(real.all()):
            return slice(None)  # nothing is padded, whatever became of the tokens
        raise UnsupportedError(
            f"The {stack} attends over {size} positions but the mask has {len(real)}: padding "
            "cannot be told from them. Pass inputs of one length at a time."
        )
    positions = real.nonzero()[:, 0]
    if not len(positions):
        raise UsageError("An input consists of padding only.")
    first, last = int(positions[0]), int(positions[-1]) + 1
    # a view costs nothing; only holes in the middle need a copy
    return slice(first, last) if last - first == len(positions) else positions.cpu()
