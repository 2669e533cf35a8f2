"""Rows or batches of any kind, as what a model takes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.base.errors import UsageError
from headcount.models.find import unwrap


class TokenRows(Protocol):
    """Rows of tokens that make batches of themselves (`tasks.encoding.Encoded`)."""

    def batches(
        self, tokens: int = ..., rows: int = ...
    ) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """(row numbers, padded batch), at most so many tokens and rows each."""
        ...


Batches = TokenRows | Iterable[Mapping[str, Any]]
"""Rows of tokens, or batches as a DataLoader gives them."""
TARGETS = "targets"
"""The column with the tokens that a model is to write, where its labels are something else."""
TOKENS = 1024
"""Tokens per batch of rows, padding included."""


@dataclass(frozen=True, eq=False)
class ModelBatch:
    """Some rows as a model takes them, whole examples of them."""

    inputs: dict[str, Any]
    labels: Tensor | None
    examples: Tensor | None = None
    """(row,) the number of the example that each belongs to; None: every row is one."""
    targets: Tensor | None = None
    """(row, token) what is to be written at each token, where labels are something else."""


def batches_for(model: nn.Module, data: Batches, *, tokens: int = TOKENS) -> Iterator[ModelBatch]:
    """Batches on the model's device, without what its forward does not name.

    The decoder of an encoder–decoder that is given no tokens of its own reads the labels, or the
    encoder's tokens again where there are none.
    """
    bare = unwrap(model)
    known = _parameters(type(bare))
    device = next(bare.parameters()).device
    batches: Iterable[Any] = (
        data if isinstance(data, Iterable) else (b for _, b in data.batches(tokens))
    )
    empty = True
    for batch in batches:
        empty = False
        if not isinstance(batch, Mapping):
            raise UsageError(f"A batch is a dict of tensors, not {type(batch).__name__}.")
        moved = {name: _to(value, device) for name, value in batch.items()}
        labels = moved.pop("labels", None)
        inputs = model_inputs(bare, moved)
        if "decoder_input_ids" in known and "decoder_input_ids" not in inputs:
            inputs |= _for_decoder(bare, inputs, labels, known)
        yield ModelBatch(inputs, labels, moved.get("examples"), moved.get(TARGETS))
    if empty:
        raise UsageError("There is no data: not a single row or batch.")


def model_inputs(model: nn.Module, batch: Mapping[str, object]) -> dict[str, Any]:
    """What of a batch the model's forward names, on the model's device, without a cache.

    Labels are left out but where a decoder is given no other tokens; one beside an encoder reads
    the targets that a batch has, one behind.
    """
    known = _parameters(type(model))
    device = next(model.parameters()).device
    labels = batch.get("labels")
    decodes = isinstance(labels, Tensor) and labels.ndim == 2 and "decoder_input_ids" in known
    inputs = {
        name: _to(value, device)
        for name, value in batch.items()
        if name in known and (name != "labels" or (decodes and "decoder_input_ids" not in batch))
    }
    if isinstance(batch.get(TARGETS), Tensor) and "decoder_input_ids" in known:
        inputs |= _for_decoder(model, inputs, _to(batch[TARGETS], device), known)
    return inputs | ({"use_cache": False} if "use_cache" in known else {})


def _for_decoder(
    model: nn.Module, inputs: dict[str, Any], labels: Tensor | None, known: frozenset[str]
) -> dict[str, Tensor]:
    if labels is None and isinstance(inputs.get("input_ids"), Tensor):
        ids = inputs["input_ids"]
        labels = ids.masked_fill(inputs.get("attention_mask", torch.ones_like(ids)) == 0, -100)
    shifted = None if labels is None or labels.ndim != 2 else shift_labels(model, labels)
    if labels is None or shifted is None:
        return {}
    tensors = {"decoder_input_ids": shifted}
    if "decoder_attention_mask" in known and "decoder_attention_mask" not in inputs:
        tensors["decoder_attention_mask"] = _with_start(labels)
    return tensors


def shift_labels(model: nn.Module, labels: Tensor) -> Tensor | None:
    """What the decoder reads while it learns these labels: each behind the one before it.

    None where the model does not say how. Decoders of sound do not, and all do it alike.
    """
    most = getattr(getattr(model, "config", None), "max_target_positions", None)
    if isinstance(most, int) and labels.shape[1] > most:
        raise UsageError(
            f"A text of {labels.shape[1]} tokens is longer than what {type(model).__name__} "
            f"writes, {most} at most: cut the row into parts, or leave it out."
        )
    shift: Any = getattr(model, "prepare_decoder_input_ids_from_labels", None)
    if shift is not None:
        return shift(labels=labels)
    config: Any = model.config
    start, pad = getattr(config, "decoder_start_token_id", None), config.pad_token_id
    if "input_ids" in _parameters(type(model)) or start is None or pad is None:
        return None
    return torch.cat([torch.full_like(labels[:, :1], start), labels[:, :-1]], dim=1).masked_fill(
        functional.pad(labels[:, :-1] == -100, (1, 0)), pad
    )


def counted_tokens(inputs: Mapping[str, object], stack: str, positions: int) -> Tensor | None:
    """(position,) which tokens of a stack are no padding; None when all count.

    Cross-attention has one output per token of the decoder.
    """
    names = ["attention_mask"] if stack == "encoder" else ["decoder_attention_mask"]
    if "decoder_input_ids" not in inputs:
        names = ["attention_mask"]
    for name in names:
        mask = inputs.get(name)
        if isinstance(mask, Tensor) and mask.numel() == positions:
            return mask.reshape(-1).bool()
    return None


def _with_start(labels: Tensor) -> Tensor:
    """The shifted labels' mask: the start token counts, padding at the end does not."""
    counts = (labels != -100).long()
    return torch.cat([torch.ones_like(counts[:, :1]), counts[:, :-1]], dim=1)


def _to(value: object, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value


@lru_cache(maxsize=64)
def _parameters(kind: type[nn.Module]) -> frozenset[str]:
    return frozenset(inspect.signature(kind.forward).parameters)
