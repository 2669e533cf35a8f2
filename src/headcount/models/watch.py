"""Look at what modules give while a model runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, TypeVar

from torch import nn

from headcount.models.hooks import hooked

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
