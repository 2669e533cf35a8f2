"""All heads of whole layers: the layer keeps its feed-forward part alone.

On the weak link between importance and prunability (EMNLP 2020), §3.3, Tables 5 and 6.

The text says which layers lose their heads: `top:3` (nearest the output), `bottom:3`, `middle:4`,
several joined by `+`, `even` or `odd`. Layers count from 0, so `even` empties 0, 2, 4, … It holds
for every stack; `decoder=top:3 encoder=odd` names some, and the others stay whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.heads import Layout, Mask
from headcount.pruning.counts import require_no_ratio
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.select import as_layout

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
@checked
class Layers:
    """The layers named lose all their heads.

    >>> twelve = Layout.of(encoder=[2] * 12)
    >>> Layers(empty="top:3+bottom:3").prepare(twelve, MethodInputs())(None, 0).mask.pattern
    '000222222000'
    >>> Layers(empty="middle:4").prepare(twelve, MethodInputs())(None, 0).mask.pattern
    '222200002222'
    """

    needs: ClassVar = "nothing"
    ratio: ClassVar = "none"

    empty: str = ""
    """Which lose all heads: top:3, bottom:3, top:3+bottom:3, middle:4, even, odd."""

    def __post_init__(self) -> None:
        if not self.empty:
            raise UsageError("The method 'layers' needs layers to empty: top:3, middle:4, odd …")

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """Only the number of layers counts."""
        layout = as_layout(model)
        gone = read_layers(self.empty, layout)
        kept = (head for head in layout if head.layer not in gone.get(head.stack, ()))
        decision = Decision(mask=Mask(layout, frozenset(kept)))

        def decide(ratio: float | None, seed: int) -> Decision:
            require_no_ratio("layers", ratio)
            return decision

        return decide


def read_layers(text: str, layout: Layout) -> dict[str, set[int]]:
    """Stack -> the layers that are named."""
    named: dict[str, str] = {}
    if "=" not in text:
        named = dict.fromkeys((stack.name for stack in layout.stacks), text.strip())
    else:
        for word in re.split(r"[,\s]+", text.strip()):
            name, _, rest = word.partition("=")
            if layout[name].name in named:
                raise UsageError(f"'{text}' names the {name} twice.")
            named[name] = rest
    return {name: _read_stack(what, name, len(layout[name].heads)) for name, what in named.items()}


def _read_stack(text: str, stack: str, count: int) -> set[int]:
    layers: list[int] = []
    for part in text.split("+"):
        if part in ("even", "odd"):
            layers += range(part == "odd", count, 2)
            continue
        match = re.fullmatch(r"(top|bottom|middle):(\d+)", part)
        if match is None:
            raise UsageError(
                f"'{part}' names no layers; write top:3, bottom:3, middle:4, even, odd, or "
                "several joined by +."
            )
        many = int(match[2])
        start = {"top": count - many, "bottom": 0, "middle": (count - many) // 2}[match[1]]
        if many > count:
            raise UsageError(f"'{part}' names {many} layers; the {stack} has {count}.")
        layers += range(start, start + many)
    if len(set(layers)) < len(layers):
        raise UsageError(f"'{text}' names layers twice; the {stack} has {count}.")
    return set(layers)
