"""Run a model up to one site after another, for layers that are settled one by one.

Each block is computed from what the one before gave: a batch waits where a block begins. How a
block is called, once the one before has given its answer, is seen in one whole run (`explore`):
it gets what the one before got, or a part of what that gave. Where it gets something else (in a new
list of blocks, with another mask, with a cache) the model runs its own forward pass again, in which
settled blocks return at once with what they gave.

Whether that is all that happens between blocks is tried (`holds`): one batch runs through the whole
model and must show the same numbers at every site, bit for bit. Where it does not, every run has to
be a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from headcount.models.layers import block_of
from headcount.models.partial import Call, driven
from headcount.models.watch import watching

Inputs = dict[str, Any]
"""What a model is called with, by name."""
Block = tuple[str, int]
"""The path of a list of blocks, and a place in it."""
Recipe = dict[int | str, int | None]
"""What a block is given -> which part of the last block's answer it is; None: what that was given.
"""
Side = Literal["input", "output"]
"""What goes into a site's output projection, or what comes out of it."""


class Watched(Protocol):
    """What is looked at: a `Site`, or any other module with a projection in it or the same."""

    @property
    def path(self) -> str:
        """Its name here, and a module of the block."""
        ...

    @property
    def out(self) -> str:
        """The projection that shows something."""
        ...


class UnsteadyError(Exception):
    """The model does more between its blocks than was seen: every run has to be a whole one."""


class _Enough(Exception):
    """What was wanted has run: nothing behind it is needed."""


@dataclass
class _Batch:
    """Where one batch waits."""

    at: Block = ("", -1)
    call: Call[Any] | None = None
    """Of the block where it waits; none before the first and where it is not known."""
    answer: Any = None
    """Of that block, where its weights stay as they are."""
    kept: dict[str, tuple[int, Any]] = field(default_factory=dict)
    """List of blocks -> (the last settled one, what it gave)."""
    ahead: dict[str, list[Tensor]] = field(default_factory=dict)
    """Sites that were seen before they were asked for."""


class Stages:
    """A model run up to one site after another, with many batches.

    Sites come in the order they run. With the side "output" the model's weights stay as they are,
    and a block is computed once; with "input" those of a site change after it was asked for.

    A site with an entry in `residuals`, paths of modules that run before it in its block, shows
    those modules' inputs as well, (position, width): added to its output, or as further columns of
    its input.
    """

    def __init__(
        self,
        model: nn.Module,
        sites: Sequence[Watched],
        side: Side,
        *,
        recipes: Mapping[Block, Recipe] | None = None,
        residuals: Mapping[str, Sequence[str]] | None = None,
        whole: bool = False,
    ) -> None:
        self.model, self.sites, self.side = model, sites, side
        self.residuals = dict(residuals or {})
        self.blocks = {site.path: block_of(model, site.path) for site in sites}
        lists = dict.fromkeys(block[0] for block in self.blocks.values() if block is not None)
        self.every = {
            (path, index): block
            for path in lists
            for index, block in enumerate(model.get_submodule(path).children())
        }
        """All blocks of the lists that sites are in."""
        self.recipes = dict(recipes or {})
        """How a block is called after the one before, where that is known."""
        self.whole = whole or None in self.blocks.values()
        """Every run is a whole one."""
        self.shortened = False
        """Whether a run was not a whole one."""
        self.batches: dict[int, _Batch] = {}
        self.tried: tuple[int, dict[str, object], dict[str, list[Tensor]]] | None = None
        """A batch: its number, what it is, and what was seen of it without whole runs."""

    def explore(self, inputs: Inputs) -> dict[str, int]:
        """Path -> how often a site runs, in order; all is known of batch 0, which this must be."""
        last: dict[str, tuple[int, Call[object], object]] = {}

        def note(block: Block, call: Call[Any]) -> Any:
            path, index = block
            before, given, answer = last.get(path, (-1, None, None))
            if given is not None and before == index - 1:
                recipe = _recipe(given, answer, call)
                if recipe is not None:
                    self.recipes[block] = recipe
            last[path] = index, call, call()
            return last[path][2]

        with driven(self.every, note):
            seen, _ = self._look(partial(self.model, **inputs), self.sites)
        self.batches[0] = _Batch(ahead=seen)
        return {path: len(outputs) for path, outputs in seen.items()}

    def run_to(self, site: Watched, uses: int, number: int, inputs: Inputs) -> list[Tensor]:
        """What a site shows each time it runs; `number` is that of the batch."""
        batch = self.batches.setdefault(number, _Batch())
        if site.path in batch.ahead:
            return batch.ahead.pop(site.path)
        block = self.blocks[site.path]
        if self.whole or uses > 1 or block is None:
            return self._look(partial(self.model, **inputs), [site], uses)[0][site.path]
        try:
            seen = self._step_to(site, block, batch, inputs)
        except Exception as error:
            if self.shortened:
                raise UnsteadyError from error
            raise
        if self.tried is None:
            self.tried = number, inputs, {}
        if self.tried[0] == number:
            self.tried[2].update(batch.ahead | {site.path: seen})
        return seen

    def holds(self) -> bool:
        """Whether one batch shows the same in a whole run, at every site that was asked for."""
        if self.tried is None or not self.shortened:
            return True
        _, inputs, seen = self.tried
        sites = [site for site in self.sites if site.path in seen]
        again, _ = self._look(partial(self.model, **inputs), sites, 1)
        return all(
            len(again.get(path, [])) == len(mine) and all(map(torch.equal, mine, again[path]))
            for path, mine in seen.items()
        )

    def _step_to(self, site: Watched, block: Block, batch: _Batch, inputs: Inputs) -> list[Tensor]:
        call = self._reach(block, batch, inputs)
        if self.side == "input":
            return self._look(call, [site], 1)[0][site.path]
        inside = [other for other in self.sites if self.blocks[other.path] == block]
        batch.ahead, batch.answer = self._look(call, inside)
        return batch.ahead.pop(site.path)

    def _reach(self, block: Block, batch: _Batch, inputs: Inputs) -> Call[object]:
        """The call of a block, where the batch waits from now on; those below are settled."""
        while batch.call is not None and batch.at != block:
            path, index = batch.at
            answer = batch.call() if batch.answer is None else batch.answer
            batch.kept[path] = index, answer
            recipe = self.recipes.get((path, index + 1)) if path == block[0] else None
            given, batch.call, batch.answer = batch.call, None, None
            if recipe is not None:
                forward = self.every[path, index + 1].forward
                batch.at, batch.call = (path, index + 1), _follow(recipe, given, answer, forward)
                self.shortened = True
        return batch.call or self._pass_to(block, batch, inputs)

    def _pass_to(self, block: Block, batch: _Batch, inputs: Inputs) -> Call[object]:
        """The same by a forward pass of the model, in which settled blocks are not computed."""

        def give(at: Block, call: Call[Any]) -> object:
            path, index = at
            last, answer = batch.kept.get(path, (-1, None))
            if index <= last:
                self.shortened = True
                return answer
            if at == block:
                batch.at, batch.call = at, call
                raise _Enough
            batch.kept[path] = index, call()
            return batch.kept[path][1]

        with driven(self.every, give), suppress(_Enough):
            self.model(**inputs)
        if batch.call is None:
            raise RuntimeError(f"{block[0]}.{block[1]} did not run")
        return batch.call

    def _look(
        self, call: Callable[[], object], sites: Sequence[Watched], uses: int | None = None
    ) -> tuple[dict[str, list[Tensor]], object]:
        """What sites show, in the order they run, and the answer; not once each has run `uses`."""
        seen: dict[str, list[Tensor]] = {}
        beside: dict[tuple[str, str], Tensor] = {}

        def take(key: tuple[str, str], args: tuple[Any, ...], output: Tensor) -> None:
            path, residual = key
            # the model goes on with these, and may write into them
            if residual:
                beside[key] = args[0].clone().flatten(0, -2)
                return
            value = args[0] if self.side == "input" else output.clone()
            if path in self.residuals:
                parts = [value.flatten(0, -2), *(beside[path, r] for r in self.residuals[path])]
                value = torch.cat(parts, -1) if self.side == "input" else sum(parts[1:], parts[0])
            seen.setdefault(path, []).append(value)
            if uses and all(len(seen.get(site.path, ())) >= uses for site in sites):
                raise _Enough

        answer = None
        places = [((site.path, ""), site.out) for site in sites]
        # in front: a residual may be the input of the projection itself
        places[:0] = [
            ((site.path, module), module)
            for site in sites
            for module in self.residuals.get(site.path, ())
        ]
        with watching(self.model, places, take), suppress(_Enough):
            answer = call()
        return seen, answer


def _recipe(given: Call[Any], answer: object, call: Call[Any]) -> Recipe | None:
    """How a call is made of the one before and its answer; None where it is not made of them."""
    before, recipe = _values(given), {}
    for name, value in _values(call).items():
        parts = enumerate(_parts(answer)) if value is not None else ()
        recipe[name] = next((index for index, part in parts if part is value), None)
        as_before = name in before and before[name] is value and _lasts(value)
        if recipe[name] is None and not as_before:
            return None
    return recipe if any(index is not None for index in recipe.values()) else None


def _follow(
    recipe: Recipe, given: Call[Any], answer: object, forward: Callable[..., object]
) -> Call[object]:
    """The next call by its recipe."""
    before, parts = _values(given), _parts(answer)
    values = {name: before[name] if n is None else parts[n] for name, n in recipe.items()}
    named = {name: value for name, value in values.items() if isinstance(name, str)}
    return partial(forward, *(values[n] for n in range(len(values) - len(named))), **named)


def _values(call: Call[Any]) -> dict[int | str, object]:
    return dict(enumerate(call.args)) | call.keywords


def _parts(answer: object) -> tuple[object, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def _lasts(value: object) -> bool:
    """Whether a value is the same after it was used, as a cache is not; for any batch."""
    if isinstance(value, tuple | list):
        return all(map(_lasts, value))
    return value is None or isinstance(value, Tensor | bool | str)
