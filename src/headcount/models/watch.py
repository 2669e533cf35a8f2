"""Look at what modules give while a model runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from headcount.models.cut import hidden_states
from headcount.models.hooks import evaluating, hooked
from headcount.models.probe import seeded

Key = TypeVar("Key")
Take = Callable[[Key, tuple[Any, ...], Any], Any]
"""(which module, what went in, what came out) -> None, or what is to come out instead."""


@contextmanager
def watching(
    model: nn.Module, modules: Iterable[tuple[Key, str]], take: Take[Key]
) -> Generator[None]:
    """Inside, `take` is called each time one of the modules, (key, path), has run."""

    def hook(key: Key, path: str) -> Callable[[], object]:
        def seen(_: nn.Module, args: tuple[object, ...], output: object) -> Any:
            return take(key, args, output)

        return lambda: model.get_submodule(path).register_forward_hook(seen)

    with hooked([hook(key, path) for key, path in modules]):
        yield


def read_positions(model: nn.Module, path: str, inputs: Mapping[str, object]) -> list[Tensor]:
    """(position,) of each time a module runs: whether the model's first answer depends on what it
    gives there. A classifier reads one position of its last layer."""
    given: list[Tensor] = []

    def take(_: int, __: object, output: Tensor) -> Tensor:
        given.append(output.detach().requires_grad_())
        return given[-1]

    with torch.enable_grad(), evaluating(model), seeded(), watching(model, [(0, path)], take):
        answer: Tensor = model(**inputs)[0]
        weights = torch.randn(answer.shape, dtype=answer.dtype).to(answer.device)
        gradients = torch.autograd.grad((answer * weights).sum(), given, allow_unused=True)
    return [
        torch.ones_like(output[..., 0], dtype=torch.bool).reshape(-1)
        if gradient is None
        else gradient.ne(0).any(-1).reshape(-1)
        for output, gradient in zip(given, gradients, strict=True)
    ]


@contextmanager
def noting_widths(model: nn.Module, places: Iterable[tuple[str, str]]) -> Generator[dict[str, int]]:
    """Inside, how wide the input of an attention module is, of (module, projection), each time it
    runs; only where the projection answers every position of that input."""
    given: dict[str, Tensor] = {}
    widths: dict[str, int] = {}

    def see(path: str, _: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        given[path] = hidden_states(kwargs, args)

    def answer(path: str, _: nn.Module, args: tuple[object, ...], output: object) -> None:
        states = given.pop(path)
        if isinstance(output, Tensor) and output.shape[:-1] == states.shape[:-1]:
            widths[path] = states.shape[-1]

    hooks: list[Callable[[], object]] = []
    for path, out in places:
        module, projection = model.get_submodule(path), model.get_submodule(out)
        seen, answered = partial(see, path), partial(answer, path)
        hooks.append(partial(module.register_forward_pre_hook, seen, with_kwargs=True))
        hooks.append(partial(projection.register_forward_hook, answered))
    with hooked(hooks):
        yield widths
