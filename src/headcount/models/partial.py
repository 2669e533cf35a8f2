"""Run a part of a model: its blocks give what they gave before until the part begins.

The model runs its own forward pass, so masks, positions and everything else are prepared as
always; only blocks below a point return at once with what was kept. `Replay` starts at one call of
a layer after another with the same batch, for masks that differ from there on; `Stages` goes up to
one site after another with many batches, for layers that are settled one by one. Both are tried
against whole runs by their users, since a model may do more with its blocks' outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from headcount.models.find import unwrap
from headcount.models.hooks import hooked
from headcount.models.layers import Layer, block_of
from headcount.models.sites import Site

Key = TypeVar("Key", bound=Hashable)
Block = tuple[str, int]
"""The path of a list of blocks, and a place in it."""
Kept = dict[str, tuple[int, Any]]
"""List of blocks -> (the last settled one, what it gave)."""


@contextmanager
def driven(
    blocks: Mapping[Key, nn.Module], drive: Callable[[Key, Callable[[], Any]], Any]
) -> Generator[None]:
    """Inside, `drive(key, compute)` answers for the blocks; `compute()` is a block's own answer."""

    def asking(key: Key, forward: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: drive(key, lambda: forward(*args, **kwargs))

    own = {key: vars(block).get("forward") for key, block in blocks.items()}  # accelerate sets one
    try:
        for key, block in blocks.items():
            block.forward = asking(key, block.forward)
        yield
    finally:
        for key, block in blocks.items():
            vars(block).pop("forward", None)
            if (forward := own[key]) is not None:
                block.forward = forward


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
        blocks = {layer.path: self.model.get_submodule(layer.path) for layer in self.layers}
        try:
            with driven(blocks, self._call):
                yield self
        finally:
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

    def _call(self, _: str, compute: Callable[[], Any]) -> Any:
        number = self._at
        self._at += 1
        if number < self._start:
            remembered = self.outputs[self._start - 1]
            return _repeat(remembered, self._copies) if self._copies > 1 else remembered
        output = compute()
        if self._keep:
            self.outputs[number] = output
        return output


class _Enough(Exception):
    """The site has run: nothing behind it is needed."""


class Stages:
    """A model run up to one site after another, with what its settled blocks gave to each batch.

    What lies below a site is settled by then, so its blocks are not computed again. Whether the
    model allows that (its blocks pass on nothing beside) is tried on the first batch of every site;
    where the two differ, every run is a whole one.
    """

    def __init__(self, model: nn.Module, sites: list[Site]) -> None:
        self.model = model
        self.blocks = {site.path: block_of(model, site.path) for site in sites}
        self.kept: dict[int, Kept] = {}
        """By the number of the batch."""
        self.whole = None in self.blocks.values()
        """Every run is a whole one."""

    def run_to(
        self, site: Site, uses: int, number: int, inputs: dict[str, Any], side: str
    ) -> list[Tensor]:
        """What goes into a site's output projection or comes out of it, each time it runs.

        `number` is that of the batch. Sites come in the order they run, and a block is settled
        once a site of a later one is asked for.
        """
        block = self.blocks[site.path]
        if self.whole or uses > 1 or block is None:
            return self._run(site, uses, inputs, side)
        before = self.kept.get(number, {})
        if _settled(before, block):
            return self._run(site, uses, inputs, side)
        now, seen = dict(before), None
        try:
            with self._going_on(before, now, block):
                seen = self._run(site, uses, inputs, side)
        except Exception:
            if not before:
                raise
        # an exception here is a model that does more with its blocks' outputs: as if they differed
        tried = bool(before) and number == 0
        if seen is None or (tried and not self._as_whole(seen, site, uses, inputs, side)):
            self.whole = True
            self.kept.clear()
            return self._run(site, uses, inputs, side)
        self.kept[number] = now
        return seen

    def _as_whole(
        self, seen: list[Tensor], site: Site, uses: int, inputs: dict[str, Any], side: str
    ) -> bool:
        expected = self._run(site, uses, inputs, side)
        return len(seen) == len(expected) and all(map(torch.equal, seen, expected))

    def _run(self, site: Site, uses: int, inputs: dict[str, Any], side: str) -> list[Tensor]:
        seen: list[Tensor] = []

        def take(_: nn.Module, args: tuple, output: Tensor) -> None:
            seen.append(args[0] if side == "input" else output)
            if len(seen) == uses:
                raise _Enough

        hook = [lambda: self.model.get_submodule(site.out).register_forward_hook(take)]
        with hooked(hook), suppress(_Enough):
            self.model(**inputs)
        return seen

    @contextmanager
    def _going_on(self, before: Kept, now: Kept, target: Block) -> Generator[None]:
        """Inside, settled blocks give what was kept, and those before the target are kept."""

        def give(block: Block, compute: Callable[[], Any]) -> Any:
            path, index = block
            if _settled(before, block):
                return before[path][1]
            output = compute()
            if path != target[0] or index < target[1]:
                now[path] = (index, output)
            return output

        paths = dict.fromkeys(block[0] for block in self.blocks.values() if block is not None)
        every = {
            (path, index): block
            for path in paths
            for index, block in enumerate(self.model.get_submodule(path).children())
        }
        with driven(every, give):
            yield


def _settled(kept: Kept, block: Block) -> bool:
    return kept.get(block[0], (-1,))[0] >= block[1]


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
