"""Gates: multiply head outputs, by 0 and 1 or by numbers that are trained.

    with hc.gate(model, mask): ...                   # masked, not smaller: saves no time
    gates = open_gates(hc.layout(model), batch=8)    # per example: every example's dL/dgate
    with hc.gate(model, gates): model(**batch).loss.backward()

A gate acts on the input of the output projection, where heads still lie side by side, so it
works with every attention implementation and is exact under dropout; attention that runs without
calling that projection is refused by name. With gradient checkpointing, call `backward` inside
the `with`: it runs the forward pass again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.errors import UnsupportedError, UsageError
from headcount.heads import Layout
from headcount.heads.as_mask import MaskLike
from headcount.models.door import require_model
from headcount.models.find import mask_for, sites_of, unwrap
from headcount.models.hooks import hooked
from headcount.models.sites import Site

Gates = Mapping[str, Tensor | Sequence[Tensor | None]]
"""For each stack one gate per layer, of shape (head) or (batch, head); None leaves it open."""


def open_gates(
    layout: Layout,
    *,
    batch: int | None = None,
    trainable: bool = True,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> dict[str, list[Tensor]]:
    """Gates of 1 for every head, per example when `batch` is given."""
    return {
        stack.name: [
            torch.ones(
                (count,) if batch is None else (batch, count),
                dtype=dtype,
                device=device,
                requires_grad=trainable,
            )
            for count in stack.heads
        ]
        for stack in layout.stacks
    }


@contextmanager
def gate(model: nn.Module, gates: MaskLike | Gates | Tensor) -> Generator[nn.Module]:
    """Multiply each head's output by its gate inside the `with`.

    `gates` is a mask, in any form that `hc.remove` takes, or tensors of numbers: for each stack one
    per layer, or a single one of layers x heads for a model of one stack.
    """
    bare = require_model(unwrap(model), "hc.gate")
    sites = sites_of(bare)
    values = _tensors(gates, sites)
    by_site = _from_mask(bare, sites, gates) if values is None else _check(sites, values)
    hooks = [
        hook
        for site, g in by_site
        for path, out in site.places
        if site.heads
        for hook in _hooks_on(bare, path, out, site, g)
    ]
    _forget_compiled()
    try:
        with hooked(hooks), _synchronised([g for _, g in by_site]):
            yield model
    finally:
        _forget_compiled()


def _tensors(given: Any, sites: list[Site]) -> Gates | None:
    """Gates that are tensors, by stack: they may be trained, or be per example; None for a mask."""
    if isinstance(given, Mapping):
        named = all(isinstance(name, str) and not name.isdecimal() for name in given)
        return given if named and all(map(_are_rows, given.values())) else None
    stacks = {site.stack for site in sites}
    if len(stacks) == 1 and _are_rows(given) and len(given):
        return {stacks.pop(): list(given)}
    return None


def _are_rows(value: object) -> bool:
    """Whether it has a tensor for each layer."""
    if isinstance(value, Tensor):
        return value.ndim > 1
    return isinstance(value, list | tuple | nn.ParameterList) and all(
        row is None or isinstance(row, Tensor) for row in value
    )


def _from_mask(model: nn.Module, sites: list[Site], given: Any) -> list[tuple[Site, Tensor]]:
    mask = mask_for(model, given)
    gates = []
    for site in sites:
        kept = set(mask.indices(site.stack, site.layer))
        if len(kept) < site.heads:
            gates.append((site, torch.tensor([float(i in kept) for i in range(site.heads)])))
    return gates


def _check(sites: list[Site], gates: Gates) -> list[tuple[Site, Tensor]]:
    known = {(site.stack, site.layer): site for site in sites}
    layers = {stack: sum(site.stack == stack for site in sites) for stack, _ in known}
    checked = []
    for stack, values in gates.items():
        if len(values) != layers.get(stack, 0):
            raise UsageError(
                f"{len(values)} gates for the {stack}, which has {layers.get(stack, 0)} layers."
            )
        for layer, value in enumerate(values):
            if value is None:
                continue
            site = known[stack, layer]
            if value.ndim not in (1, 2) or value.shape[-1] != site.heads:
                raise UsageError(
                    f"The gate of {stack} layer {layer} has shape {tuple(value.shape)}; it is "
                    f"({site.heads},) or (batch, {site.heads})."
                )
            checked.append((site, value))
    return checked


def _hooks_on(
    model: nn.Module, path: str, out: str, site: Site, value: Tensor
) -> list[Callable[[], object]]:
    """The gate at one place, and the check that it acts whenever the attention there runs."""
    heads, head_dim = site.heads, site.head_dim
    inside = out.startswith(path + ".") or not path
    around = model.get_submodule(path if inside else path.rpartition(".")[0])
    acted = [True]

    def start(*_: object) -> None:
        acted[0] = False

    def end(*_: object) -> None:
        if not acted[0]:
            raise UnsupportedError(
                f"Gates do nothing in {type(model).__name__}: {path or 'it'} runs without calling "
                f"its output projection {out}, so its heads cannot be masked, scored or removed."
            )

    def multiply(_: nn.Module, args: tuple[Any, ...]) -> tuple[object, ...]:
        acted[0] = True
        z = args[0]  # (batch, token, head * head_dim), or (batch * token, …) in some vision models
        gate_values = value.to(z.device, z.dtype)
        if gate_values.ndim == 1:
            return (z * gate_values.repeat_interleave(head_dim), *args[1:])
        batch = gate_values.shape[0]
        if z.shape[0] % batch:
            raise UsageError(f"Gates for {batch} examples meet a batch of {z.shape[0]}.")
        split = z.reshape(batch, -1, heads, head_dim) * gate_values[:, None, :, None]
        return (split.reshape(z.shape), *args[1:])

    return [
        lambda: around.register_forward_pre_hook(start),
        lambda: model.get_submodule(out).register_forward_pre_hook(multiply),
        lambda: around.register_forward_hook(end),
    ]


@contextmanager
def _synchronised(gates: list[Tensor]) -> Generator[None]:
    """Average the gradients of shared gates over processes: DDP knows only the model's own."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    trained = [g for g in gates if g.requires_grad and g.ndim == 1] if distributed else []

    def average(grad: Tensor) -> Tensor:
        grad = grad.clone()
        torch.distributed.all_reduce(grad)
        return grad / torch.distributed.get_world_size()

    with hooked([lambda g=g: g.register_hook(average) for g in trained]):
        yield


def _forget_compiled() -> None:
    """Drop compiled code: torch.compile does not notice hooks that come and go."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None and dynamo.utils.counters["stats"]["unique_graphs"]:
        dynamo.reset()
