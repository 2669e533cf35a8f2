"""Run a part of a model: its blocks give what they gave before until the part begins.

The model runs its own forward pass, so masks, positions and everything else are prepared as
always; only blocks below a point return at once with what was kept. `Replay` starts at one call of
a layer after another with the same batch, for masks that differ from there on; it is tried against
whole runs by its user, since a model may do more with its blocks' outputs. `stages.py` goes up to
one site after another with many batches.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from torch import Tensor, nn

from headcount.models.find import unwrap
from headcount.models.layers import Layer

Key = TypeVar("Key", bound=Hashable)
Call = partial
"""A block's own forward pass with what it is given."""


@contextmanager
def driven(
    blocks: Mapping[Key, nn.Module], drive: Callable[[Key, Call[Any]], object]
) -> Generator[None]:
    """Inside, `drive(key, call)` answers for the blocks; `call()` is a block's own answer."""

    def asking(key: Key, forward: Callable[..., object]) -> Callable[..., object]:
        return lambda *args, **kwargs: drive(key, partial(forward, *args, **kwargs))

    forwards = {
        key: vars(block).get("forward") for key, block in blocks.items()
    }  # accelerate sets one
    try:
        for key, block in blocks.items():
            block.forward = asking(key, block.forward)
        yield
    finally:
        for key, block in blocks.items():
            vars(block).pop("forward", None)
            if (forward := forwards[key]) is not None:
                block.forward = forward


class Replay:
    """The calls of a model's layers in one forward pass, with their remembered outputs."""

    def __init__(self, model: nn.Module, layers: list[Layer], calls: list[str]) -> None:
        self.model = unwrap(model)
        self.layers = layers
        self.calls = calls
        """Paths of the layers in the order they run."""
        self.outputs: list[object] = [None] * len(calls)
        self._at = 0
        self._start = 0
        self._keep = False
        self._copies = 1

    @contextmanager
    def attached(self) -> Generator[Replay]:
        """Inside, the layers ask this object before they run."""
        blocks = {layer.path: self.model.get_submodule(layer.path) for layer in self.layers}
        try:
            with driven(blocks, self._call):
                yield self
        finally:
            self.outputs = [None] * len(self.calls)

    def run(
        self, inputs: Mapping[str, object], start: int, *, copies: int = 1, keep: bool = True
    ) -> Any:
        """The model's answer, computed from call number `start` on.

        `copies` repeats the batch, one copy behind the other, for as many gates; `keep`
        remembers the outputs of the layers that ran.
        """
        self._at, self._start, self._copies, self._keep = 0, start, copies, keep
        if copies > 1:
            inputs = {name: _repeat(value, copies) for name, value in inputs.items()}
        answer = self.model(**inputs)
        if self._at != len(self.calls):
            raise RuntimeError("the layers did not run in the order they had run in before")
        return answer

    def _call(self, _: str, call: Call[Any]) -> object:
        number = self._at
        self._at += 1
        if number < self._start:
            remembered = self.outputs[self._start - 1]
            return _repeat(remembered, self._copies) if self._copies > 1 else remembered
        output = call()
        if self._keep:
            self.outputs[number] = output
        return output


def _repeat(value: object, copies: int) -> object:
    """Every tensor of a nest repeated along its first axis; a first axis of 1 spreads by itself."""
    if isinstance(value, Tensor):
        if value.ndim == 0 or value.shape[0] == 1:
            return value if value.ndim == 0 else value.expand(copies, *value.shape[1:])
        return value.repeat(copies, *[1] * (value.ndim - 1))
    if isinstance(value, tuple):
        return tuple(_repeat(item, copies) for item in value)
    if isinstance(value, Mapping):
        return {name: _repeat(item, copies) for name, item in value.items()}
    return value
