"""Damage to what a JSON or TOML file says: a value somewhere in it becomes another."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any


class Gentle(Random):
    """A generator that damages nothing: what it makes must be read."""


DEEP, LONG = "@deep@", "@long@"
"""Stand for lists in lists and for a number of many digits, which json.dumps cannot write."""
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, 10**30, 1e308, -0.0, 0.5,
    float("nan"), float("inf"), "", "0", "encoder", "decoder", "nothing", "a" * 5000,
    "\x1b[2J\x07", "$x^2$", "\u202eabc", "\ud800", "\x00", "a\u2028b", "../../outside", "/",
    [], {}, [[]], [None], [0] * 300, {"a": {}}, {"": 0}, DEEP, LONG,
)  # fmt: skip
Place = tuple[Any, Any]
"""A list or dict, and where in it."""


def places(tree: Any) -> Iterator[Place]:
    """Every place of a tree that can be changed."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield tree, key
        if isinstance(value, dict | list):
            yield from places(value)


def damaged(tree: Any, rng: Random) -> Any:
    """A copy of the tree with one to three places changed."""
    if isinstance(rng, Gentle):
        return tree
    if rng.random() < 0.03:
        return copy.deepcopy(rng.choice(ODD))
    held = [copy.deepcopy(tree)]  # so that the root too is a value at a place
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        every = list(places(held))
        if not every:
            break
        box, key = rng.choice(every)
        _change(box, key, rng, every)
    return held[0] if held else None


def _change(box: Any, key: Any, rng: Random, every: list[Place]) -> None:
    what = rng.randrange(8)
    value = box[key]
    if what <= 1:
        box[key] = copy.deepcopy(rng.choice(ODD))
    elif what == 2:
        del box[key]
    elif what == 3:
        other, place = rng.choice(every)
        box[key] = copy.deepcopy(other[place]) if _there(other, place) else None
    elif what == 4:
        box[key] = [value] if rng.random() < 0.5 else {"x": value}
    elif what == 5 and isinstance(box, dict):
        box[rng.choice((f"{key}_", "", "layout", "\x1b[1m", "__class__"))] = box.pop(key)
    elif what == 6 and isinstance(box, list):
        box.insert(rng.randrange(len(box) + 1), copy.deepcopy(value))
    else:
        box[key] = _near(value, rng)


def _there(box: Any, key: Any) -> bool:
    return key in box if isinstance(box, dict) else key < len(box)


def _near(value: Any, rng: Random) -> Any:
    """Another value of the same kind, or nearly."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        ways = (value + 1, value - 1, -value, float(value), str(value), value * 10**6, [value])
        return rng.choice(ways)
    if isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        return value[:at] + rng.choice(("", "x", "é", "\n", "\x00", "{", '"')) + value[at + 1 :]
    if isinstance(value, list):
        return rng.choice(
            (value[:-1], value[::-1], value * 2, {str(i): v for i, v in enumerate(value)})
        )
    if isinstance(value, dict):
        return list(value.values())
    return value


def dumped(tree: Any, rng: Random) -> str:
    """The tree as JSON text."""
    text = json.dumps(tree, ensure_ascii=rng.random() < 0.8)
    deep = "[" * 20_000 + "]" * 20_000
    return text.replace(f'"{DEEP}"', deep).replace(f'"{LONG}"', "9" * 5000)
