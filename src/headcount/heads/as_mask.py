"""A mask of what people have: heads to remove by layer, a table of 0 and 1, a text, a file.

    as_mask({0: [1, 3]}, layout)                 # heads to remove, as transformers 4 wrote them
    as_mask([[1, 0, 1, 0], [1, 1, 1, 1]], layout)          # layers x heads, 0 for those that go
    as_mask("23", layout), as_mask("small/mask.json", layout)

What can be read in two ways is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headcount.base.errors import UsageError
from headcount.base.files import expanded, read_text
from headcount.base.text import short
from headcount.heads.layout import Head, Layout, Stack
from headcount.heads.mask import Mask
from headcount.heads.scores import Scores

MaskLike = Mask | str | Path | Mapping[int, object] | Mapping[str, object] | Sequence[object]
"""What `as_mask` reads; tensors and arrays too, which are named nowhere here."""
FORMS = (
    "a hc.Mask, heads to remove by layer ({0: [1, 3]}), a table of 0 and 1 (layers x heads), "
    "text such as '777322', or a mask.json"
)


def as_mask(given: object, layout: Layout) -> Mask:
    """The heads of `layout` that stay.

    >>> as_mask({0: [1]}, Layout.of(encoder=[2, 2])).counts()
    {'encoder': (1, 2)}
    """
    if isinstance(given, Mask):
        return given
    if isinstance(given, str | Path):
        return Mask.parse(mask_text(given), layout)
    if isinstance(given, Scores):
        raise UsageError("These are scores, not a mask: scores.keep_best(count) gives one.")
    given = _plain(given)
    if isinstance(given, Mapping):
        return _of_mapping(given, layout)
    if not isinstance(given, list | tuple):
        raise UsageError(f"A mask is {FORMS}, not {short(given)}.")
    if given and any(isinstance(item, list | tuple) and _names_stack(item) for item in given):
        raise UsageError(
            "A list of heads does not say whether they stay or go: hc.Mask.of(layout, heads) "
            "keeps them, hc.Mask.full(layout).drop(heads) removes them."
        )
    return Mask(layout, frozenset(_table(given, _only_stack(layout, "{'encoder': …}"))))


def are_several(given: object) -> bool:
    """Whether it is a list of masks, and not the table of one."""
    if not isinstance(given, list | tuple) or not given:
        return False
    first = given[0]
    if isinstance(first, list | tuple):
        return bool(first) and (isinstance(first[0], list | tuple) or _axes(first[0]) == 1)
    return isinstance(first, Mask | str | Path | Mapping | Scores) or _axes(first) == 2


def mask_text(given: str | Path) -> str:
    """The text of a mask: what is written, or what is in the file that is named."""
    if isinstance(given, Path) or given.endswith(".json"):
        return read_text(expanded(given), "mask")
    return given


def _plain(given: Any) -> Any:
    """Arrays and tensors as lists; a tensor of any other number of axes is no table."""
    axes = getattr(given, "ndim", None)
    if axes is None or not hasattr(given, "tolist"):
        return given
    if axes != 2:
        raise UsageError(
            f"A mask is a table of 0 and 1, layers x heads, and this has {axes} "
            f"{'axis' if axes == 1 else 'axes'}: write every layer's row."
        )
    return given.tolist()


def _of_mapping(given: Mapping[Any, object], layout: Layout) -> Mask:
    if "kept" in given or "layout" in given:
        return Mask.from_json(given, layout)
    if any(isinstance(name, str) and not name.isdecimal() for name in given):
        kept = set(layout)
        for name, value in given.items():
            stack = layout[name]
            heads = {head for head in layout if head.stack == stack.name}
            value = _plain(value)
            if isinstance(value, Mapping):
                kept -= _by_layer(value, stack)
            else:
                kept -= heads - _table(value, stack)
        return Mask(layout, frozenset(kept))
    stack = _only_stack(layout, "{'encoder': {0: [1]}}")
    return Mask(layout, frozenset(layout) - _by_layer(given, stack))


def _by_layer(given: Mapping[Any, Any], stack: Stack) -> set[Head]:
    """The heads that go, from layer -> heads."""
    gone: set[Head] = set()
    for key, heads in given.items():
        layer = _number(key, f"a layer of the {stack.name}", len(stack.heads))
        count, where = stack.heads[layer], f"a head of {stack.name} layer {layer}"
        heads = heads.tolist() if hasattr(heads, "tolist") else heads
        if not isinstance(heads, list | tuple | set | frozenset | range):
            raise UsageError(
                f"The heads to remove of layer {layer} are a list, not {short(heads)}."
            )
        if stack.numbers and stack.numbers[layer] != tuple(range(count)) and heads:
            raise UsageError(
                f"{stack.name} layer {layer} has lost heads before: {short(heads)} may be an old "
                "or a new number; pass a table of 0 and 1, with a column for every head it has now."
            )
        gone.update(Head(stack.name, layer, _number(head, where, count)) for head in heads)
    return gone


def _number(value: Any, what: str, count: int) -> int:
    """A number from 0; `True` is none, so that a row of 0 and 1 is not read as heads."""
    try:
        number = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        number = -1
    if isinstance(value, bool) or not 0 <= number < count:
        raise UsageError(
            f"{short(value)} is not {what}: they are numbered from 0 to {count - 1}."
            if count
            else f"{short(value)} is not {what}, which has none."
        )
    return number


def _table(rows: object, stack: Stack) -> set[Head]:
    """The heads that stay, from a row of 0 and 1 for every layer."""
    shape = f"{len(stack.heads)} layers with a 0 or 1 for every head"
    if not isinstance(rows, list | tuple) or len(rows) != len(stack.heads):
        size = f"{len(rows)} rows" if isinstance(rows, list | tuple) else short(rows)
        raise UsageError(f"A mask of the {stack.name} has {shape}, not {size}.")
    kept = set()
    for layer, (row, count) in enumerate(zip(rows, stack.heads, strict=True)):
        row = row.tolist() if hasattr(row, "tolist") else row
        if not isinstance(row, list | tuple) or len(row) != count:
            raise UsageError(
                f"{stack.name} layer {layer} has {count} heads, and its row in the mask is "
                f"{short(row)}: write a 0 or 1 for every head."
            )
        strange = [value for value in row if value not in (0, 1)]
        if strange:
            raise UsageError(
                f"A mask has 0 for heads that go and 1 for those that stay, not {short(strange[0])}"
                f" ({stack.name} layer {layer}); only hc.gate takes other numbers, as tensors."
            )
        kept |= {Head(stack.name, layer, index) for index, value in enumerate(row) if value}
    return kept


def _axes(value: object) -> int:
    return getattr(value, "ndim", 0)


def _names_stack(item: Sequence[object]) -> bool:
    return bool(item) and isinstance(item[0], str)


def _only_stack(layout: Layout, form: str) -> Stack:
    if len(layout.stacks) != 1:
        names = ", ".join(stack.name for stack in layout.stacks) or "none"
        raise UsageError(
            f"This model has {len(layout.stacks)} stacks ({names}): say which is meant, as in "
            f"{form}."
        )
    return layout.stacks[0]
