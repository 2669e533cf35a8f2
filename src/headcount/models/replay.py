"""Run a model from the middle: layers below a point give back what they gave before.

The model runs its own forward pass, so masks, positions and everything else are prepared as
always; only the layers below `start` return at once, the one just below with its remembered
output. What a mask changes in layer k never needs anything below k computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from headcount.models.find import unwrap
from headcount.models.layers import Layer


class Replay:
    """The calls of a model's layers in one forward pass, with their remembered outputs."""

    def __init__(self, model: nn.Module, layers: list[Layer], calls: list[str]) -> None:
        self.model = unwrap(model)
        self.layers = layers
        self.calls = calls
        """Paths of the layers in the order they run."""
        self.outputs: list[Any] = [None] * len(calls)
        self._at = 0
        self._start = 0
        self._keep = False
        self._copies = 1

    @contextmanager
    def attached(self) -> Generator[Replay]:
        """Inside, the layers ask this object before they run."""
        modules = [self.model.get_submodule(layer.path) for layer in self.layers]
        before = [vars(module).get("forward") for module in modules]
        try:
            for module in modules:
                module.forward = self._wrap(module.forward)
            yield self
        finally:
            for module, own in zip(modules, before, strict=True):
                if own is None:
                    del module.forward
                else:
                    module.forward = own
            self.outputs = [None] * len(self.calls)

    def run(
        self, inputs: Mapping[str, Any], start: int, *, copies: int = 1, keep: bool = True
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

    def _wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            number = self._at
            self._at += 1
            if number < self._start:
                remembered = self.outputs[self._start - 1]
                return _repeat(remembered, self._copies) if self._copies > 1 else remembered
            output = forward(*args, **kwargs)
            if self._keep:
                self.outputs[number] = output
            return output

        return call


def _repeat(value: Any, copies: int) -> Any:
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
