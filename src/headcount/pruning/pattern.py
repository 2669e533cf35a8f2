"""A number of heads for each layer or for each component, drawn or the first; or all heads.

On the weak link between importance and prunability (EMNLP 2020), §3.2, Tables 2 and 3.

`777322` keeps 7, 7, 7, 3, 2, 2 heads in six layers; `encoder:777322 decoder:223777` says so for
each stack. `14,31,30` keeps so many heads in the three components of an encoder–decoder, in the
order encoder, cross, decoder; `cross=31` names one. What is not named keeps all its heads. A mask
as JSON keeps exactly its heads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from headcount.base.errors import UsageError
from headcount.base.names import unknown
from headcount.base.options import checked
from headcount.heads import Layout, Mask, Scores
from headcount.heads.choose import Place, keep_in_parts, random_scores
from headcount.pruning.counts import require_no_ratio
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_layout

if TYPE_CHECKING:
    from torch import nn

PICK = ("random", "first")


@dataclass(frozen=True, kw_only=True)
class AllHeads:
    """Keep every head: what the same repair does to the whole model, for comparison."""

    needs: ClassVar = "nothing"
    ratio: ClassVar = "none"

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """The same mask for every ratio and seed."""
        decision = Decision(mask=Mask.full(as_layout(model)))
        return lambda ratio, seed: decision


@dataclass(frozen=True, kw_only=True)
@checked
class Pattern:
    """So many heads in each layer or component, drawn by seed, or the `first` of each.

    >>> decide = Pattern(keep="777322").prepare(Layout.of(encoder=[8] * 6), MethodInputs())
    >>> decide(None, 0).mask.pattern, decide(None, 0).mask == decide(None, 1).mask
    ('777322', False)
    >>> three = Layout.of(encoder=[8] * 6, cross=[8] * 6, decoder=[8] * 6)
    >>> mask = Pattern(keep="14,31,30").prepare(three, MethodInputs())(None, 0).mask
    >>> [sum(counts) for counts in mask.counts().values()]
    [14, 31, 30]
    """

    needs: ClassVar = "nothing"
    ratio: ClassVar = "none"

    keep: str = field(default="", metadata={"names": ("--keep", "--mask")})
    """Heads to keep, per layer (777322), component (14,31,30), or exactly (mask.json)."""
    pick: Literal["random", "first"] = "random"
    """Which heads of a layer stay."""

    def __post_init__(self) -> None:
        if not self.keep:
            raise UsageError(
                "The method 'pattern' needs heads to keep: 777322, 14,31,30 or a mask."
            )
        if self.pick not in PICK:
            says = f"Heads are picked random or first, not '{self.pick}'"
            raise unknown(says, self.pick, PICK, has=None)

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """Only the number of heads counts."""
        from headcount.models.numbers import read_mask  # takes torch, and options do not

        layout = as_layout(model)
        exact = read_mask(self.keep, model, layout) if self.keep.lstrip().startswith("{") else None
        parts = [] if exact is not None else read_parts(self.keep, layout)

        def decide(ratio: float | None, seed: int) -> Decision:
            require_no_ratio("pattern", ratio)
            if exact is not None:
                return Decision(mask=exact)
            scores = Scores(layout, tuple(-np.arange(len(layout), dtype=float)))
            if self.pick == "random":
                scores = random_scores(layout, np.random.default_rng(seed))
            return Decision(mask=keep_in_parts(scores, parts))

        return decide


def read_parts(text: str, layout: Layout) -> list[tuple[list[Place], int]]:
    """(layers, heads to keep in them) of every part that the text counts."""
    if "=" in text or (len(layout.stacks) > 1 and ":" not in text):
        return _components(text, layout)
    counts = Mask.parse(text, layout).counts()  # refuses wrong layers and too many heads
    return [
        ([(stack, layer)], count)
        for stack, layers in counts.items()
        for layer, count in enumerate(layers)
    ]


def _components(text: str, layout: Layout) -> list[tuple[list[Place], int]]:
    names = [stack.name for stack in layout.stacks]
    words = re.split(r"[,\s]+", text.strip())
    if "=" in text:
        pairs = [tuple(word.split("=", 1)) for word in words]
    else:
        if len(words) != len(names):
            raise UsageError(
                f"'{text}' counts {len(words)} components; this model has {len(names)}: "
                f"{', '.join(names)}."
            )
        pairs = list(zip(names, words, strict=True))
    parts = []
    for pair in pairs:
        if len(pair) != 2 or not pair[1].isdecimal():
            raise UsageError(f"'{text}' is not heads per component; write 14,31,30 or cross=31.")
        stack, count = layout[pair[0]], int(pair[1])
        if count > stack.total:
            raise UsageError(
                f"'{text}' keeps {count} heads in the {stack.name}, which has {stack.total}."
            )
        parts.append(([(stack.name, layer) for layer in range(len(stack.heads))], count))
    if len({places[0][0] for places, _ in parts}) < len(parts):
        raise UsageError(f"'{text}' names a component twice.")
    return parts
