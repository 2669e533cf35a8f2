"""A model run up to one layer after another, each time from where it got the time before.

Recovery needs all inputs at every layer in turn. What lies below a layer is settled by then, so
its blocks are not computed again: they hand on what the last of them gave before, which is kept
for every batch. Whether a model allows that (its blocks pass on nothing beside) is tried on the
first batch of every layer, against a whole run; where the two differ, every run is a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn

from headcount.models.hooks import hooked
from headcount.models.sites import Site


class _Enough(Exception):
    """The layer has run: nothing behind it is needed."""


class Stages:
    """One model with what its settled blocks gave, batch by batch."""

    def __init__(self, model: nn.Module, sites: list[Site]) -> None:
        self.model = model
        self.blocks = {site.path: block_of(model, site.path) for site in sites}
        self.kept: dict[int, dict[str, tuple[int, Any]]] = {}
        """Batch -> list of blocks -> (the last settled one, what it gave)."""
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
        if before.get(block[0], (-1,))[0] >= block[1]:
            return self._run(site, uses, inputs, side)
        now, seen = dict(before), None
        try:
            with self._passing(before), self._keeping(now, block):
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
    def _passing(self, kept: dict[str, tuple[int, Any]]) -> Generator[None]:
        """Inside, settled blocks give what was kept and compute nothing."""
        passed = [
            (block, kept[path][1])
            for path, blocks in self._lists()
            if path in kept
            for block in blocks[: kept[path][0] + 1]
        ]
        own = [block.__dict__.get("forward") for block, _ in passed]  # accelerate sets one
        try:
            for block, output in passed:
                block.forward = _giving(output)
            yield
        finally:
            for (block, _), forward in zip(passed, own, strict=True):
                del block.forward
                if forward is not None:
                    block.forward = forward

    @contextmanager
    def _keeping(
        self, kept: dict[str, tuple[int, Any]], target: tuple[str, int]
    ) -> Generator[None]:
        """Inside, what the blocks before the target give is kept, of each list the last."""

        def keep(path: str, index: int) -> Callable[..., None]:
            def note(_: nn.Module, args: tuple, output: Any) -> None:
                kept[path] = (index, output)

            return note

        hooks = [
            lambda block=block, path=path, index=index: block.register_forward_hook(
                keep(path, index)
            )
            for path, blocks in self._lists()
            for index, block in enumerate(blocks)
            if index > kept.get(path, (-1,))[0] and (path != target[0] or index < target[1])
        ]
        with hooked(hooks):
            yield

    def _lists(self) -> list[tuple[str, list[Any]]]:
        paths = dict.fromkeys(block[0] for block in self.blocks.values() if block is not None)
        return [(path, list(self.model.get_submodule(path).children())) for path in paths]


def block_of(model: nn.Module, path: str) -> tuple[str, int] | None:
    """(path of the outermost list of blocks, place in it) for a module; None where there is none.

    >>> block_of(nn.Sequential(nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])), "0.1")
    ('0', 1)
    """
    parts = path.split(".")
    for end in range(1, len(parts)):
        if isinstance(model.get_submodule(".".join(parts[:end])), nn.ModuleList):
            return ".".join(parts[:end]), int(parts[end])
    return None


def _giving(output: Any) -> Callable[..., Any]:
    return lambda *_, **__: output
