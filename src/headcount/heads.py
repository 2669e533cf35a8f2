"""The vocabulary: a head, the layout of a model's heads, a mask of kept heads, scores of heads.

All are small frozen values that know nothing of torch. A layer here is one set of attention
weights: a layer that the model runs several times (ALBERT) is one layer with `uses` > 1.

    layout = Layout.of(encoder=[12] * 12)
    mask   = Mask.full(layout).drop([Head("encoder", 0, 3)])
    mask.sparsity                        # 1/144
    Mask.parse("777322", Layout.of(encoder=[8] * 6))
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple

from headcount import html
from headcount.errors import UsageError
from headcount.files import parse_json
from headcount.names import did_you_mean, unknown
from headcount.text import line, short

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
        if len(head) != 3 or not all(isinstance(place, Integral) for place in head[1:]):
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
        parts = [
            f"{stack.name}: {len(stack.heads)} x {_span(stack.heads)}" for stack in self.stacks
        ]
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

    def to_json(self) -> dict[str, Any]:
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
            found = cls(
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
        if any(stack.total > MOST for stack in found.stacks):
            raise UsageError(f"This is not a layout of a model, with so many heads: {short(data)}")
        return found


@dataclass(frozen=True, repr=False)
class Mask:
    """A frozen set of kept heads of one layout.

    `|`, `&`, `-`, `^`, `~` and `<=` work as on sets of kept heads; both sides need one layout.
    """

    layout: Layout
    kept: frozenset[Head]

    def __post_init__(self) -> None:
        strange = sorted((head for head in self.kept if head not in self.layout), key=str)
        if strange:
            raise UsageError(
                f"The mask keeps {_some(strange)}, which this model does not have: {self.layout}."
            )

    @classmethod
    def full(cls, layout: Layout) -> Mask:
        """Every head kept."""
        return cls(layout, frozenset(layout))

    @classmethod
    def none(cls, layout: Layout) -> Mask:
        """No head kept."""
        return cls(layout, frozenset())

    @classmethod
    def of(cls, layout: Layout, kept: Iterable[Sequence[str | int]]) -> Mask:
        """Exactly the heads given as (stack, layer, index)."""
        return cls(layout, frozenset(_heads(kept)))

    @classmethod
    def parse(cls, text: str, layout: Layout) -> Mask:
        """Read `777322`, `12x12`, `12,10,7`, `encoder:88 decoder:88` or JSON.

        Counts keep the first heads of each layer. `12x12` is 12 layers of 12 heads.

        >>> Mask.parse("21", Layout.of(encoder=[2, 2]))
        Mask(encoder: 21; keeps 3 of 4 heads)
        """
        text = text.strip()
        if text.startswith("{"):
            return cls.from_json(parse_json(text, "This mask is not JSON"), layout)
        parts = _parts_by_stack(text, layout)
        kept: set[Head] = set()
        for stack in layout.stacks:
            counts = read_counts(parts[stack.name])
            if len(counts) != len(stack.heads):
                raise UsageError(
                    f"'{parts[stack.name]}' counts {len(counts)} layers; the {stack.name} "
                    f"has {len(stack.heads)}."
                )
            for layer, (count, there) in enumerate(zip(counts, stack.heads, strict=True)):
                if count > there:
                    raise UsageError(
                        f"'{parts[stack.name]}' keeps {count} heads in {stack.name} layer "
                        f"{layer}, which has {there}."
                    )
                kept.update(Head(stack.name, layer, index) for index in range(count))
        return cls(layout, frozenset(kept))

    def keep(self, heads: Iterable[Sequence[str | int]]) -> Mask:
        """This mask with `heads` kept as well."""
        return Mask(self.layout, self.kept | _heads(heads))

    def drop(self, heads: Iterable[Sequence[str | int]]) -> Mask:
        """This mask with `heads` dropped as well."""
        dropped = _heads(heads)
        strange = sorted((head for head in dropped if head not in self.layout), key=str)
        if strange:
            raise UsageError(
                f"There is no head {_some(strange)} to drop in this model: {self.layout}."
            )
        return Mask(self.layout, self.kept - dropped)

    def _with(self, other: Mask, combine: Callable[..., frozenset[Head]]) -> Mask:
        if self.layout != other.layout:
            raise UsageError(f"Two masks of different layouts: {self.layout}, {other.layout}.")
        return Mask(self.layout, combine(self.kept, other.kept))

    def __or__(self, other: Mask) -> Mask:
        return self._with(other, frozenset.union)

    def __and__(self, other: Mask) -> Mask:
        return self._with(other, frozenset.intersection)

    def __sub__(self, other: Mask) -> Mask:
        return self._with(other, frozenset.difference)

    def __xor__(self, other: Mask) -> Mask:
        return self._with(other, frozenset.symmetric_difference)

    def __invert__(self) -> Mask:
        return Mask(self.layout, frozenset(self.layout) - self.kept)

    def __le__(self, other: Mask) -> bool:
        return self.layout == other.layout and self.kept <= other.kept

    def __contains__(self, head: object) -> bool:
        return head in self.kept

    def __iter__(self) -> Iterator[Head]:
        return (head for head in self.layout if head in self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    def __bool__(self) -> bool:
        return True

    @property
    def dropped(self) -> tuple[Head, ...]:
        """The heads that go, in order."""
        return tuple(head for head in self.layout if head not in self.kept)

    @property
    def sparsity(self) -> float:
        """Head sparsity: dropped heads / all heads (0 for a layout without heads)."""
        total = len(self.layout)
        return (total - len(self.kept)) / total if total else 0.0

    def indices(self, stack: str, layer: int) -> tuple[int, ...]:
        """Which heads of one layer stay."""
        heads = self.layout[stack].heads
        if not 0 <= layer < len(heads):
            raise UsageError(f"There is no {stack} layer {layer}; it has {len(heads)} layers.")
        return tuple(i for i in range(heads[layer]) if Head(stack, layer, i) in self.kept)

    def counts(self) -> dict[str, tuple[int, ...]]:
        """Heads kept in each layer of each stack."""
        return {
            stack.name: tuple(len(self.indices(stack.name, i)) for i in range(len(stack.heads)))
            for stack in self.layout.stacks
        }

    @property
    def pattern(self) -> str:
        """Heads kept per layer, as `777322`, with stack names where there are several."""
        counts = {name: write_counts(values) for name, values in self.counts().items()}
        if len(counts) == 1:
            return next(iter(counts.values()))
        return " ".join(f"{name}:{text}" for name, text in counts.items())

    def __repr__(self) -> str:
        counts = " ".join(f"{name}: {write_counts(v)}" for name, v in self.counts().items())
        spans = " ".join(f"{name}: {len(v)} x {_span(v)}" for name, v in self.counts().items())
        keeps = f"keeps {len(self)} of {len(self.layout)} heads"
        return line(f"Mask({counts}; {keeps})", f"Mask({spans}; {keeps})", f"Mask({keeps})")

    def _repr_html_(self) -> str:
        return html.grid(
            f"Mask: keeps {len(self)} of {len(self.layout)} heads",
            self.layout,
            lambda head: 0.7 if head in self.kept else None,
            lambda head: "kept" if head in self.kept else "dropped",
        )

    def to_json(self) -> dict[str, Any]:
        """A plain dict that `Mask.from_json` reads back: its layout and the kept heads."""
        kept = {
            stack.name: [list(self.indices(stack.name, i)) for i in range(len(stack.heads))]
            for stack in self.layout.stacks
        }
        return {"layout": self.layout.to_json(), "kept": kept}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], layout: Layout | None = None) -> Mask:
        """The mask that `to_json` wrote; with `layout`, refuse one made for another model."""
        try:
            own = Layout.from_json(data["layout"])
            layers = {name: len(layers) for name, layers in data["kept"].items()}
            kept = frozenset(
                Head(name, layer, index)
                for name, layers in data["kept"].items()
                for layer, indices in enumerate(layers)
                for index in indices
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"This is not a mask: {short(data)}") from error
        if layers != {stack.name: len(stack.heads) for stack in own.stacks}:
            raise UsageError(f"The mask has other layers ({short(layers)}) than its layout: {own}.")
        if layout is not None and own != layout:
            raise UsageError(f"The mask is for another layout: {own}, not {layout}.")
        return cls(own, kept)


@dataclass(frozen=True, repr=False)
class Scores:
    """One number per head of a layout, in the layout's order."""

    layout: Layout
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "values", tuple(float(value) for value in self.values))
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"Scores are numbers, not {short(self.values)}.") from error
        if len(self.values) != len(self.layout):
            raise UsageError(f"{len(self.values)} scores for {len(self.layout)} heads.")

    def __getitem__(self, head: Sequence[str | int]) -> float:
        (head,) = _heads([head])
        if head not in self.layout:
            raise UsageError(f"There is no head {head} in this model: {self.layout}.")
        return dict(self.items())[head]

    def items(self) -> Iterator[tuple[Head, float]]:
        """(head, score) in the layout's order."""
        return zip(self.layout, self.values, strict=True)

    def ranked(self) -> list[Head]:
        """Heads from the lowest score to the highest; ties by position."""
        if any(math.isnan(value) for value in self.values):
            raise UsageError("Scores that are not numbers (NaN) cannot be ranked.")
        return [head for head, _ in sorted(self.items(), key=lambda item: item[1])]

    def keep_best(self, count: int) -> Mask:
        """The mask of the `count` highest scores.

        >>> Scores(Layout.of(encoder=[2]), (0.1, 0.9)).keep_best(1)
        Mask(encoder: 1; keeps 1 of 2 heads)
        """
        if not 0 <= count <= len(self.layout):
            raise UsageError(f"Cannot keep {count} of {len(self.layout)} heads.")
        ranked = self.ranked()
        return Mask(self.layout, frozenset(ranked[len(ranked) - count :]))

    def by_layer(self) -> dict[str, list[list[float]]]:
        """Scores as lists: stack -> layer -> head."""
        out = {stack.name: [[] for _ in stack.heads] for stack in self.layout.stacks}
        for head, value in self.items():
            out[head.stack][head.layer].append(value)
        return out

    def __repr__(self) -> str:
        if not self.values:
            return "Scores(no heads)"
        return line(f"{type(self).__name__}({self._summary()})")

    def _summary(self) -> str:
        numbers = [item for item in self.items() if not math.isnan(item[1])]
        parts = [f"{len(self.values)} heads"]
        if numbers:
            ends = (("lowest", min), ("highest", max))
            found = [(which, *end(numbers, key=lambda item: item[1])) for which, end in ends]
            shown = (f"{which} {self.layout.original(h)} {v:.4g}" for which, h, v in found)
            parts.append(", ".join(shown))
        if len(numbers) < len(self.values):
            parts.append(f"{len(self.values) - len(numbers)} NaN")
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        shades = dict(zip(self.layout, html.scaled(self.values), strict=True))
        values = dict(self.items())
        return html.grid(
            f"{type(self).__name__}: {self._summary()}",
            self.layout,
            shades.__getitem__,
            lambda head: f"{values[head]:.4g}",
        )

    def to_json(self) -> dict[str, Any]:
        """A plain dict that `Scores.from_json` reads back."""
        return {"layout": self.layout.to_json(), "scores": self.by_layer()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scores:
        """The scores that `to_json` wrote."""
        try:
            layout = Layout.from_json(data["layout"])
            by_layer = {
                name: [list(layer) for layer in layers] for name, layers in data["scores"].items()
            }
            counts = {name: [len(layer) for layer in layers] for name, layers in by_layer.items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"These are not scores: {short(data)}") from error
        if counts != {stack.name: list(stack.heads) for stack in layout.stacks}:
            raise UsageError(f"The scores count other heads ({short(counts)}) than {layout}.")
        # by name: a file may have its stacks in another order
        return cls(layout, tuple(by_layer[h.stack][h.layer][h.index] for h in layout))


def write_counts(counts: Sequence[int]) -> str:
    """Heads per layer in short: digits when they fit, commas when not.

    >>> write_counts([7, 7, 3]), write_counts([12, 7]), write_counts([12])
    ('773', '12,7', '12,')
    """
    if all(count < 10 for count in counts):
        return "".join(map(str, counts))
    # one layer of 12 heads: '12' alone would be two layers
    return ",".join(map(str, counts)) + "," * (len(counts) == 1)


def _span(counts: Sequence[int]) -> str:
    """The smallest and the largest count, or the one that all are."""
    few, many = min(counts, default=0), max(counts, default=0)
    return str(few) if few == many else f"{few} to {many}"


def read_counts(text: str) -> list[int]:
    """The inverse of `write_counts`; `12x8` is 12 layers of 8 heads."""
    if match := re.fullmatch(r"(\d{1,5})x(\d{1,5})", text):
        return [int(match[2])] * int(match[1])
    if re.fullmatch(r"\d{1,5}(,\d{1,5})+,?|\d{1,5},", text):
        return [int(part) for part in text.rstrip(",").split(",")]
    if re.fullmatch(r"\d*", text):
        return [int(digit) for digit in text]
    raise UsageError(f"{short(text)} is not heads per layer; write 777322, 12x8 or 12,10,7.")


def _parts_by_stack(text: str, layout: Layout) -> dict[str, str]:
    """`encoder:88 decoder:88` or, for one stack, `88` -> text per stack."""
    if ":" not in text:
        if len(layout.stacks) != 1:
            names = " ".join(f"{stack.name}:…" for stack in layout.stacks)
            raise UsageError(f"This model has {len(layout.stacks)} stacks; write {names}.")
        return {layout.stacks[0].name: text}
    parts: dict[str, str] = {}
    for part in re.sub(r":[ \t]+(?=\d)", ":", text).split():
        name, colon, counts = part.partition(":")
        if not colon:
            raise UsageError(f"'{part}' in '{text}' belongs to no stack; write encoder:{part}.")
        if name in parts:
            raise UsageError(f"'{text}' names {layout[name].name} twice.")
        parts[layout[name].name] = counts
    for stack in layout.stacks:
        parts.setdefault(stack.name, write_counts(stack.heads))
    return parts


def _heads(items: Iterable[Sequence[Any]]) -> set[Head]:
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


def _some(heads: Sequence[Head]) -> str:
    shown = ", ".join(str(head)[:80] for head in heads[:3])
    return shown + (f" and {len(heads) - 3} more" if len(heads) > 3 else "")
