"""A mask: the heads of a layout that are kept, any number in any layer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headcount.base import html
from headcount.base.errors import UsageError
from headcount.base.files import parse_json
from headcount.base.text import line, short
from headcount.heads.counts import read_counts, span, write_counts
from headcount.heads.layout import Head, Layout, read_heads


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
        return cls(layout, frozenset(read_heads(kept)))

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
            for layer, (count, present) in enumerate(zip(counts, stack.heads, strict=True)):
                if count > present:
                    raise UsageError(
                        f"'{parts[stack.name]}' keeps {count} heads in {stack.name} layer "
                        f"{layer}, which has {present}."
                    )
                kept.update(Head(stack.name, layer, index) for index in range(count))
        return cls(layout, frozenset(kept))

    def keep(self, heads: Iterable[Sequence[str | int]]) -> Mask:
        """This mask with `heads` kept as well."""
        return Mask(self.layout, self.kept | read_heads(heads))

    def drop(self, heads: Iterable[Sequence[str | int]]) -> Mask:
        """This mask with `heads` dropped as well."""
        dropped = read_heads(heads)
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
        spans = " ".join(f"{name}: {len(v)} x {span(v)}" for name, v in self.counts().items())
        keeps = f"keeps {len(self)} of {len(self.layout)} heads"
        return line(f"Mask({counts}; {keeps})", f"Mask({spans}; {keeps})", f"Mask({keeps})")

    def _repr_html_(self) -> str:
        return html.grid(
            f"Mask: keeps {len(self)} of {len(self.layout)} heads",
            self.layout,
            lambda head: 0.7 if head in self.kept else None,
            lambda head: "kept" if head in self.kept else "dropped",
        )

    def to_json(self) -> dict[str, object]:
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
            declared = Layout.from_json(data["layout"])
            layers = {name: len(layers) for name, layers in data["kept"].items()}
            kept = frozenset(
                Head(name, layer, index)
                for name, layers in data["kept"].items()
                for layer, indices in enumerate(layers)
                for index in indices
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"This is not a mask: {short(data)}") from error
        if layers != {stack.name: len(stack.heads) for stack in declared.stacks}:
            raise UsageError(
                f"The mask has other layers ({short(layers)}) than its layout: {declared}."
            )
        if layout is not None and declared != layout:
            raise UsageError(f"The mask is for another layout: {declared}, not {layout}.")
        return cls(declared, kept)


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


def _some(heads: Sequence[Head]) -> str:
    shown = ", ".join(str(head)[:80] for head in heads[:3])
    return shown + (f" and {len(heads) - 3} more" if len(heads) > 3 else "")
