"""Train only the upper part of a model: embeddings and the lowest layers stay as they are."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import nn

from headcount.base.errors import UnsupportedError, UsageError
from headcount.models.find import unwrap
from headcount.models.hooks import evaluating, hooked
from headcount.models.layers import Layer, find_layers
from headcount.models.probe import find_probe


@contextmanager
def frozen(model: nn.Module, lowest: int | None) -> Generator[None]:
    """Inside, the embeddings and the `lowest` layers of every stack have no gradients."""
    chosen = [p for p in lower_parameters(model, lowest) if p.requires_grad]
    try:
        for parameter in chosen:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in chosen:
            parameter.requires_grad_(True)


def lower_parameters(model: nn.Module, lowest: int | None) -> list[nn.Parameter]:
    """Parameters of the embeddings and of the lowest layers of every stack; none for None."""
    if lowest is None:
        return []
    model = unwrap(model)
    layers = find_layers(model)
    stacks: dict[str, list[Layer]] = {}
    for layer in layers:
        stacks.setdefault(layer.stack, []).append(layer)
    smallest = min((len(stack) for stack in stacks.values()), default=0)
    if not stacks:
        raise UnsupportedError(f"The layers of {type(model).__name__} are in no list of layers.")
    if lowest > smallest:
        raise UsageError(f"Cannot freeze {lowest} layers: the model has {smallest}.")
    below, calls = _embedding_modules(model, stacks)
    if lowest and any(calls[layer.path] > 1 for layer in layers):
        raise UnsupportedError(
            f"{type(model).__name__} runs the same weights in several layers, so its lowest "
            "layers cannot be frozen alone; freeze 0 freezes the embeddings."
        )
    names = below + [layer.path for stack in stacks.values() for layer in stack[:lowest]]
    parameters = [p for name in names for p in model.get_submodule(name).parameters()]
    return list(dict.fromkeys(parameters))


def _embedding_modules(
    model: nn.Module, stacks: dict[str, list[Layer]]
) -> tuple[list[str], dict[str, int]]:
    """Modules that have finished before the first layer of their stack starts, and call counts.

    For a second stack (a decoder) only modules of that stack count, else the encoder's last norm
    would be taken for the decoder's embedding.
    """
    probe = find_probe(model)
    firsts = {stack[0].path: name for name, stack in stacks.items()}
    calls = {layer.path: 0 for stack in stacks.values() for layer in stack}
    finished: list[str] = []
    below: list[str] = []

    def starts(path: str) -> None:
        calls[path] += 1
        if path in firsts and calls[path] == 1:
            part = firsts[path].rpartition(".")[0]
            alone = not below
            below.extend(
                name for name in finished if alone or (part and name.startswith(f"{part}."))
            )
            finished.clear()

    hooks = [
        lambda path=path: model.get_submodule(path).register_forward_pre_hook(
            lambda *_: starts(path)
        )
        for path in calls
    ]
    hooks += [
        lambda name=name, module=module: module.register_forward_hook(
            lambda *_: finished.append(name)
        )
        for name, module in model.named_modules()
        if name
    ]
    with hooked(hooks), torch.no_grad(), evaluating(model):
        model(**probe)
    return below, calls
