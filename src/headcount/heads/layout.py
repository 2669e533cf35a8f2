"""A head, and the layout of a model's heads: how many there are in each layer of each stack."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, NamedTuple

from headcount.base import html
from headcount.base.errors import UsageError
from headcount.base.names import did_you_mean, unknown
from headcount.base.text import line, short
from headcount.heads.counts import span, write_counts

STACKS = ("encoder", "cross", "decoder")
MOST = 1_000_000
"""Heads of the largest layout that is read from a file."""


class Head(NamedTuple):
    """One attention head: its stack, layer and index, all counted from 0."""

    stack: str
    layer: int
    index: int  # pyright: ignore[reportIncompatibleMethodOverride]  # hides tuple.index, unused

    def __str__(self) -> str:
        return f"{self.stack}.{self.layer}.{self.index}"


@dataclass(frozen=True)
class Stack:
    """The heads of one stack, layer by layer."""

    name: str
    heads: tuple[int, ...]
    """Query heads in each layer."""
    groups: tuple[int, ...]
    """Key-value heads in each layer; fewer than `heads` in grouped-query attention."""
    uses: tuple[int, ...]
    """How often the model runs each layer in one forward pass; above 1 where it is shared."""
    numbers: tuple[tuple[int, ...], ...] = field(default=(), compare=False, repr=False)
    """Where heads were removed: the numbers in each layer that its heads had before."""

    def __post_init__(self) -> None:
        if self.name not in STACKS:
            raise unknown(f"There is no stack {short(self.name)}", self.name, STACKS)
        for counts in ("heads", "groups", "uses"):
            object.__setattr__(self, counts, _whole(getattr(self, counts), self.name))
        if not len(self.heads) == len(self.groups) == len(self.uses):
            raise UsageError(f"Stack '{self.name}' counts its layers in two ways.")
        for layer, (heads, groups, uses) in enumerate(
            zip(self.heads, self.groups, self.uses, strict=True)
        ):
            if heads < 0 or groups < 0:
                raise UsageError(f"{self.name} layer {layer} has a negative count.")
            if uses < 1:
                raise UsageError(f"{self.name} layer {layer} is used {uses} times.")
            if (groups == 0) != (heads == 0) or (groups and heads % groups):
                raise UsageError(
                    f"{self.name} layer {layer}: {heads} heads do not share {groups} key-value "
                    "heads evenly."
                )
        numbers = tuple(_whole(layer, self.name) for layer in self.numbers)
        object.__setattr__(self, "numbers", numbers)
        if numbers and tuple(map(len, numbers)) != self.heads:
            raise UsageError(f"Stack '{self.name}' numbers other heads than it has.")

    @property
    def total(self) -> int:
        """Heads in the whole stack."""
        return sum(self.heads)

    def __str__(self) -> str:
        layers = len(self.heads)
        counts = sorted(set(self.heads))
        text = f"{layers} layer{'s' * (layers != 1)} x "
        text += (
            f"{counts[0]} head{'s' * (counts[0] != 1)}"
            if len(counts) == 1
            else f"({write_counts(self.heads)}) heads"
        )
        if self.groups != self.heads:
            kv = sorted(set(self.groups))
            text += f", {kv[0] if len(kv) == 1 else write_counts(self.groups)} key-value heads"
        if any(uses > 1 for uses in self.uses):
            uses = sorted(set(self.uses))
            text += f", shared: each used {' or '.join(map(str, uses))} times"
        return text


@dataclass(frozen=True)
class Layout:
    """Which heads a model has: counts per stack and layer, key-value groups, shared layers."""

    stacks: tuple[Stack, ...]
    unread: tuple[str, ...] = field(default=(), compare=False)
    """Attention of the model that is seen and not understood: its heads are not counted here."""

    def __post_init__(self) -> None:
        names = [stack.name for stack in self.stacks]
        if len(set(names)) != len(names):
            raise UsageError(f"A stack is named twice in {names}.")
        if names != sorted(names, key=STACKS.index):
            raise UsageError(f"Stacks come in the order {', '.join(STACKS)}, not {names}.")

    @classmethod
    def of(cls, **stacks: Sequence[int]) -> Layout:
        """A plain layout from heads per layer, without groups or shared layers.

        >>> Layout.of(encoder=[12, 12])
        Layout(encoder: 2 layers x 12 heads)
        """
        return cls(
            tuple(
                Stack(name, tuple(stacks[name]), tuple(stacks[name]), (1,) * len(stacks[name]))
                for name in sorted(stacks, key=_stack_order)
            )
        )

    def __getitem__(self, name: str) -> Stack:
        for stack in self.stacks:
            if stack.name == name:
                return stack
        have = [stack.name for stack in self.stacks]
        # decoder is no typo of encoder
        hint = "" if name in STACKS else did_you_mean(name, have)
        raise UsageError(f"This model has no {name} heads.{hint} It has: {', '.join(have)}.")

    def __contains__(self, head: object) -> bool:
        if not isinstance(head, tuple):
            return any(stack.name == head for stack in self.stacks)
        if len(head) != 3 or not all(isinstance(number, Integral) for number in head[1:]):
            return False
        name, layer, index = head
        return any(
            stack.name == name and 0 <= layer < len(stack.heads) and 0 <= index < stack.heads[layer]
            for stack in self.stacks
        )

    def __iter__(self) -> Iterator[Head]:
        for stack in self.stacks:
            for layer, count in enumerate(stack.heads):
                for index in range(count):
                    yield Head(stack.name, layer, index)

    def __len__(self) -> int:
        return sum(stack.total for stack in self.stacks)

    def layers(self) -> Iterator[tuple[str, int, int]]:
        """(stack, layer, heads) for every layer, in order."""
        for stack in self.stacks:
            for layer, count in enumerate(stack.heads):
                yield stack.name, layer, count

    def original(self, head: Head) -> Head:
        """The head with the number it had before heads were removed; the same in a whole model.

        >>> Layout((Stack("encoder", (2,), (2,), (1,), ((1, 3),)),)).original(Head("encoder", 0, 1))
        Head(stack='encoder', layer=0, index=3)
        """
        numbers = self[head.stack].numbers
        return head._replace(index=numbers[head.layer][head.index]) if numbers else head

    def kept_at(self, ratio: float) -> int:
        """How many heads stay when `ratio` of them go: ceil(H (1 - ratio)), exactly.

        >>> Layout.of(encoder=[12] * 12).kept_at(0.5)
        72
        """
        if isinstance(ratio, bool) or not isinstance(ratio, Real):
            raise UsageError(
                f"The ratio of heads to remove is a number between 0 and 1, not {ratio!r:.60}."
            )
        if not 0 <= ratio <= 1:
            raise UsageError(f"The ratio of heads to remove is between 0 and 1, not {ratio}.")
        # a product like 100 * (1 - 0.9) is 9.999…98 or 10.000…02; neither may move a head
        return math.ceil(round(len(self) * (1 - ratio), 9))

    def __str__(self) -> str:
        parts = [f"{stack.name}: {stack}" for stack in self.stacks]
        if self.unread:
            parts.append(f"not understood: {', '.join(self.unread)}")
        return f"Layout({'; '.join(parts)})"

    def __repr__(self) -> str:
        parts = [f"{stack.name}: {len(stack.heads)} x {span(stack.heads)}" for stack in self.stacks]
        unread = ["attention not understood"] if self.unread else []
        return line(str(self), f"Layout({len(self)} heads; {'; '.join(parts + unread)})")

    def _repr_html_(self) -> str:
        def group(head: Head) -> int:
            stack = self[head.stack]
            return head.index * stack.groups[head.layer] // stack.heads[head.layer]

        return html.grid(
            str(self),
            self,
            lambda head: 0.4 + 0.3 * (group(head) % 2),
            lambda head: f"key-value head {group(head)}",
        )

    def to_json(self) -> dict[str, object]:
        """A plain dict that `Layout.from_json` reads back."""
        return {
            stack.name: {
                "heads": list(stack.heads),
                "groups": list(stack.groups),
                "uses": list(stack.uses),
                **({"numbers": [list(layer) for layer in stack.numbers]} if stack.numbers else {}),
            }
            for stack in self.stacks
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Layout:
        """The layout that `to_json` wrote."""
        try:
            layout = cls(
                tuple(
                    Stack(
                        name,
                        tuple(v["heads"]),
                        tuple(v["groups"]),
                        tuple(v["uses"]),
                        tuple(v.get("numbers", ())),
                    )
                    for name, v in sorted(data.items(), key=lambda item: _stack_order(item[0]))
                )
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"This is not a layout: {short(data)}") from error
        if any(stack.total > MOST for stack in layout.stacks):
            raise UsageError(f"This is not a layout of a model, with so many heads: {short(data)}")
        return layout


def read_heads(items: Iterable[Sequence[Any]]) -> set[Head]:
    """Each (stack, layer, index) as a head; whether the model has it is asked elsewhere."""
    heads: set[Head] = set()
    for item in items:
        try:
            stack, layer, index = item
            heads.add(Head(stack, operator.index(layer), operator.index(index)))
        except (TypeError, ValueError) as error:
            raise UsageError(f"{item!r} is not a head; write (stack, layer, index).") from error
    return heads


def _whole(counts: Sequence[int], name: str) -> tuple[int, ...]:
    """`counts` as plain ints, whatever integers they were (numpy's do not go into JSON)."""
    try:
        return tuple(operator.index(count) for count in counts)
    except TypeError as error:
        raise UsageError(f"The {name}'s counts are whole numbers, not {short(counts)}.") from error


def _stack_order(name: str) -> int:
    if name not in STACKS:
        raise unknown(f"There is no stack {short(name)}", name, STACKS)
    return STACKS.index(name)
