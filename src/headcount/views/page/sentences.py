"""What heads attend to: a sentence before and after pruning, and examples of roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.views.page.reading import Packed, fill, number, packed
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem

if TYPE_CHECKING:
    from headcount.heads import Layout

DENSE = 64
"""Tokens up to which a whole map is kept; above, the keys most attended to."""
TOP = 24
"""How many keys of a query are kept in a long text."""
BUDGET = 3_000_000
"""Bytes of all maps together."""
EXAMPLES = 12
"""Example sentences kept for a head."""


@dataclass(frozen=True, kw_only=True)
class PackedMap:
    """The attention of one head, in steps of 1 / 255; of a long text, of the top keys."""

    shape: tuple[int, int]
    data: Packed
    top: int = 0
    places: Packed | None = None


@dataclass(frozen=True, kw_only=True)
class MapPair:
    """The map of every head, before and after pruning; None where there is none."""

    before: list[PackedMap | None]
    after: list[PackedMap | None]


@dataclass(frozen=True, kw_only=True)
class HeadAttention:
    """The attention of one head in one sentence."""

    entropy: float | None
    distance: float | None
    token: str
    """What it attends to most, with the share of its attention."""
    share: float | None
    removed: bool
    divergence: float | None
    """Between before and after."""


@dataclass(frozen=True, kw_only=True)
class PagePicture:
    """An image as the model sees it, its colours in bytes, and the grid of its patches."""

    shape: tuple[int, int]
    data: Packed
    rows: int
    columns: int
    start: int
    """Tokens before the first patch."""


@dataclass(frozen=True, kw_only=True)
class PageSentence:
    """One text or image, with the maps of its heads where these were kept."""

    text: str
    tokens: dict[str, dict[str, list[str]]]
    """Stack -> queries and keys."""
    heads: list[HeadAttention | None]
    maps: MapPair | None
    picture: PagePicture | None
    command: str | None


@dataclass(frozen=True, kw_only=True)
class RoleExample:
    """A row of tokens, a query, and what it attends to before and after pruning."""

    decile: float | None
    tokens: list[str]
    keys: list[str] | None
    query: float | None
    weights: list[tuple[int, float]]
    """(key, weight)"""
    pruned: bool
    """Whether a pruned model was measured too."""
    after: list[tuple[int, float]] | None
    """The weights in the pruned model; None where the head was removed."""


@dataclass(frozen=True, kw_only=True)
class HeadRoles:
    """The role of each head, and examples by head."""

    names: list[str | None]
    examples: dict[int, list[RoleExample]]


def sentences(subject: PageSubject, report: ReportInput) -> list[PageSentence]:
    """Each text that was measured."""
    left, listed = BUDGET, []
    for item in subject.of("attention"):
        with report.careful(item):
            maps, picture = _maps(item, report, subject.layout), _picture(item, report)
            if maps is not None:
                both = [one for one in (*maps.before, *maps.after) if one]
                used = sum(len(one.data) + len(one.places or "") for one in both)
                used += len(picture.data) if picture else 0
                if used > left:
                    report.skip(item.path, "its attention maps are too large to show.")
                    maps, picture, used = None, None, 0
                left -= used
            listed.append(_sentence(item, subject.layout, maps, picture))
    return listed


def _picture(item: ReportItem, report: ReportInput) -> PagePicture | None:
    """The image that is attended over, from the file beside."""
    arrays, grid = _arrays(item, report), item.data.get("picture")
    pixels = (arrays or {}).get("picture")
    if grid is None or pixels is None:
        return None
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"a picture of the shape {pixels.shape}")
    rows, columns, start = (int(grid[name]) for name in ("rows", "columns", "start"))
    return PagePicture(
        shape=pixels.shape[:2], data=packed(pixels, "u1"), rows=rows, columns=columns, start=start
    )


def _arrays(item: ReportItem, report: ReportInput) -> Mapping[str, np.ndarray] | None:
    return next((maps.data for maps in report.of("maps") if maps.folder == item.folder), None)


def _sentence(
    item: ReportItem, layout: Layout, maps: MapPair | None, picture: PagePicture | None
) -> PageSentence:
    data = item.data
    rows: dict[tuple[object, ...], Mapping[str, object]] = {
        (row["stack"], row["layer"], row["head"]): row
        for row in data["heads"]
        if not row.get("run")
    }
    return PageSentence(
        text=str(data["text"]),
        tokens={
            stack: {side: list(map(str, tokens[side])) for side in ("queries", "keys")}
            for stack, tokens in data["tokens"].items()
        },
        heads=[_head(rows.get(tuple(head))) for head in layout],
        maps=maps,
        picture=picture,
        command=item.command,
    )


def _head(row: Mapping[str, Any] | None) -> HeadAttention | None:
    if row is None:
        return None
    most = row.get("most_attended") or {}
    token, share = most.get("token") or "", number(most.get("share"))
    removed = "after" in row and row["after"] is None
    return fill(HeadAttention, row, token=token, share=share, removed=removed)


def _maps(item: ReportItem, report: ReportInput, layout: Layout) -> MapPair | None:
    """Every head's map, before and after, from the file beside."""
    arrays = _arrays(item, report)
    if arrays is None:
        return None
    before, after = (
        [_packed(arrays.get(f"{side}/{head}/0")) for head in layout] for side in ("before", "after")
    )
    return MapPair(before=before, after=after) if any(before) else None


def _packed(array: np.ndarray | None) -> PackedMap | None:
    if array is None or array.ndim != 2:
        return None
    rows, columns = array.shape
    values = np.clip(array.astype(np.float64), 0, 1)
    if max(array.shape) <= DENSE:
        return PackedMap(shape=(rows, columns), data=packed(np.rint(values * 255), "u1"))
    top = min(TOP, columns)
    places = np.argsort(-array.astype(np.float64), axis=1, kind="stable")[:, :top]
    values = np.take_along_axis(values, places, 1)
    data = packed(np.rint(values * 255), "u1")
    return PackedMap(shape=(rows, columns), data=data, top=top, places=packed(places, "u2"))


def roles(subject: PageSubject, report: ReportInput) -> HeadRoles | None:
    """The role of each head and examples of what it attends to."""
    heads = len(subject.layout)
    return next(iter(report.each(subject.of("roles"), lambda item: _roles(item, heads))), None)


def _roles(item: ReportItem, heads: int) -> HeadRoles:
    names: Sequence[object] = item.data["roles"]
    if len(names) != heads:
        raise ValueError(f"{len(names)} roles for {heads} heads")
    examples: dict[int, list[RoleExample]] = {}
    for example in item.data.get("examples") or []:
        head = int(example["head"])
        if 0 <= head < heads and len(examples.setdefault(head, [])) < EXAMPLES:
            examples[head].append(_example(example))
    return HeadRoles(
        names=[None if name is None else str(name) for name in names], examples=examples
    )


def _example(example: Mapping[str, Any]) -> RoleExample:
    keys, after = example.get("keys"), example.get("after", {"removed": True})
    return RoleExample(
        decile=number(example.get("decile")),
        tokens=list(map(str, example["tokens"])),
        keys=None if keys is None else list(map(str, keys)),
        query=number(example.get("query")),
        weights=_weights(example["weights"]),
        pruned="after" in example,
        after=None if after.get("removed") else _weights(after["weights"]),
    )


def _weights(pairs: Sequence[Sequence[Any]]) -> list[tuple[int, float]]:
    return [(int(index), number(weight) or 0.0) for index, weight in pairs]
