"""Where heads look: attention of a sentence before and after a cut, and examples of roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headcount.heads import Layout
from headcount.views.page.commands import command_in
from headcount.views.page.reading import careful, number, numbers, packed, text
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem

DENSE = 64
"""Tokens up to which a whole map is kept; above, the places most looked at."""
TOP = 24
"""How many places of a query are kept in a long text."""
BUDGET = 3_000_000
"""Bytes of all maps together."""
EXAMPLES = 12
"""Example sentences kept for a head."""


def sentences(subject: PageSubject, found: ReportInput) -> list[dict[str, Any]]:
    """Each text that was looked at, with the maps of its heads where these were kept."""
    listed: list[dict[str, Any]] = []
    left = BUDGET
    for item in subject.of("attention"):
        with careful(found, item):
            made = _sentence(item, subject.layout)
            maps, used = _maps(item, found, subject.layout, left)
            left -= used
            listed.append(made | {"maps": maps})
    return listed


def _sentence(item: ReportItem, layout: Layout) -> dict[str, Any]:
    data = item.data
    rows: dict[tuple[Any, ...], Mapping[str, Any]] = {
        (row["stack"], row["layer"], row["head"]): row
        for row in data["heads"]
        if not row.get("run")
    }
    return {
        "text": text(data["text"], 4000),
        "target": text(data["target"], 4000) if data.get("target") else None,
        "name": item.folder.name,
        "model": text(data.get("model") or "", 120),
        "pruned": text(data.get("pruned") or "", 120),
        "tokens": {
            text(stack, 20): {side: [text(word, 40) for word in own[side]]
                              for side in ("queries", "keys")}
            for stack, own in data["tokens"].items()
        },
        "heads": [_row(rows.get(tuple(head))) for head in layout],
        "command": command_in(data),
    }  # fmt: skip


def _row(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    most = row.get("most_attended") or {}
    return {
        "entropy": number(row.get("entropy")),
        "distance": number(row.get("distance")),
        "token": text(most.get("token") or "", 40),
        "share": number(most.get("share")),
        "gone": "after" in row and row["after"] is None,
        "divergence": number(row.get("divergence")),
    }


def _maps(
    item: ReportItem, found: ReportInput, layout: Layout, left: int
) -> tuple[dict[str, Any] | None, int]:
    """Every head's map, before and after, from the file beside."""
    arrays = next((each.data for each in found.of("maps") if each.folder == item.folder), None)
    if arrays is None:
        return None, 0
    made: dict[str, Any] = {"before": [], "after": []}
    used = 0
    for side, own in made.items():
        for head in layout:
            array = arrays.get(f"{side}/{head}/0")
            if array is None or array.ndim != 2:
                own.append(None)
                continue
            one = _whole(array) if max(array.shape) <= DENSE else _most(array)
            used += len(one["data"]) + len(one.get("places", ""))
            own.append(one)
            if used > left:
                found.skipped.append((str(item.path), "its attention maps are too large to show."))
                return None, 0
    return (made if any(made["before"]) else None), used


def _whole(array: np.ndarray) -> dict[str, Any]:
    whole = np.rint(np.clip(array.astype(np.float64), 0, 1) * 255)
    return {"shape": list(array.shape), "data": packed(whole, "u1")}


def _most(array: np.ndarray) -> dict[str, Any]:
    """For each query the keys most looked at."""
    top = min(TOP, array.shape[1])
    places = np.argsort(-array.astype(np.float64), axis=1, kind="stable")[:, :top]
    values = np.take_along_axis(array.astype(np.float64), places, 1)
    whole = np.rint(np.clip(values, 0, 1) * 255)
    return {"shape": list(array.shape), "top": top, "places": packed(places, "u2"),
            "data": packed(whole, "u1")}  # fmt: skip


def roles(subject: PageSubject, found: ReportInput) -> dict[str, Any] | None:
    """The role of each head and examples of where it looks."""
    for item in subject.of("roles"):
        with careful(found, item):
            data, heads = item.data, list(subject.layout)
            names = data.get("roles") or [None] * len(heads)
            if len(names) != len(heads):
                raise ValueError(f"{len(names)} roles for {len(heads)} heads")
            examples: dict[int, list[dict[str, Any]]] = {}
            for example in data.get("examples") or []:
                place = _place(example.get("head"), heads)
                if place is not None and len(examples.setdefault(place, [])) < EXAMPLES:
                    examples[place].append(_example(example))
            return {
                "names": [None if name is None else text(name, 40) for name in names],
                "count": number(data.get("count")),
                "examples": examples,
                "command": command_in(data),
            }
    return None


def _place(head: Any, heads: list[Any]) -> int | None:
    """The number of a head that was named as a number, as stack.layer.index or as a list."""
    if isinstance(head, int):
        return head if 0 <= head < len(heads) else None
    named = str(head) if isinstance(head, str) else ".".join(map(str, head or []))
    return next((place for place, each in enumerate(heads) if str(each) == named), None)


def _example(example: Mapping[str, Any]) -> dict[str, Any]:
    """Tokens, the query, and what it looks at, before and after a cut."""
    keys = example.get("keys")
    made: dict[str, Any] = {
        "decile": number(example.get("decile")),
        "tokens": [text(token, 40) for token in example.get("tokens", [])],
        "keys": None if keys is None else [text(token, 40) for token in keys],
        "query": number(example.get("query")),
        "weights": _weights(example.get("weights")),
    }
    if "after" in example:
        after = example["after"]
        made["after"] = None if after is None else _weights(after.get("weights"))
    return made


def _weights(weights: Any) -> list[list[float | None]]:
    """(place, weight) of the tokens that are looked at."""
    if isinstance(weights, Mapping):
        weights = [[int(place), weight] for place, weight in weights.items()]
    elif weights and not isinstance(weights[0], list):
        weights = list(enumerate(weights))
    return [numbers(pair) for pair in weights or []]
