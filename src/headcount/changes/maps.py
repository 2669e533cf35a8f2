"""Attention maps of one text or image as a value: every head's, and what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from headcount.base.errors import UsageError
from headcount.base.files import whole, write_json
from headcount.base.header import header
from headcount.base.text import line
from headcount.changes.divergence import js_divergence
from headcount.heads import Head, Layout, Mask, write_counts
from headcount.models.patches import PatchGrid

Map = NDArray[np.float32]  # (query, key)


class HeadUse(NamedTuple):
    """A head in one of the runs of its layer; `run` is 0 but where layers share weights."""

    head: Head
    run: int = 0


class Tokens(NamedTuple):
    """The tokens of a stack: those that look, and those that are looked at."""

    queries: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """An image as the model sees it, cut into patches; before them are other tokens."""

    pixels: NDArray[np.uint8]  # (row, column, colour)
    grid: PatchGrid

    @property
    def tokens(self) -> tuple[str, ...]:
        """The class token, further ones by number, and patches by row and column, from 0."""
        others = ("[CLS]", *(f"[{number}]" for number in range(1, self.grid.start)))
        rows, columns, start = self.grid
        patches = (f"{row},{column}" for row in range(rows) for column in range(columns))
        return (*others[:start], *patches)

    def over(self, attention: Map) -> Map:
        """(row, column) what the class token attends to; without one, all patches on average."""
        rows, columns, start = self.grid
        looked = attention[0] if start else attention.mean(0)
        return looked[start:].reshape(rows, columns)

    def distances(self) -> NDArray[np.float64]:
        """(token, token) the straight line between two patches; 0 to a token that is none."""
        rows, columns, start = self.grid
        places = np.indices((rows, columns)).reshape(2, -1).T
        far = np.zeros((start + rows * columns,) * 2)
        far[start:, start:] = np.linalg.norm(places[:, None] - places[None], axis=-1)
        return far


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionMaps:
    """Where every head looks in one text; after pruning as well, where there are two models."""

    layout: Layout
    """The heads of the first model."""
    tokens: Mapping[str, Tokens]
    """By stack; only stacks that the text reaches."""
    before: Mapping[HeadUse, Map]
    after: Mapping[HeadUse, Map] | None = None
    """The second model's, by the first one's numbers: heads that are gone are not in it."""
    mask: Mask | None = None
    """The heads that the second model has."""
    text: str = ""
    target: str | None = None
    """What the decoder of an encoder–decoder reads."""
    cut: int = 0
    """Tokens at the end of the text that did not fit."""
    picture: Picture | None = None
    """What the model sees, where that is an image; `text` is then the name of its file."""

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name}: {len(at.queries)} x {len(at.keys)} tokens" for name, at in self.tokens.items()
        )
        after = "" if self.after is None else f"; {len(self.after)} after pruning"
        return line(f"AttentionMaps({len(self.before)} maps{after}; {sizes})")

    def only(
        self,
        *,
        stack: str | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> AttentionMaps:
        """Some of the maps; what the model does not have is refused."""
        names = tuple(self.tokens) if stack is None else (self.layout[stack].name,)
        if names[0] not in self.tokens:
            raise UsageError(f"The text does not reach the {names[0]} heads of this model.")
        candidates = [run.head for run in self.before if run.head.stack in names]
        for what, numbers, known in (
            ("layer", layers, {head.layer for head in candidates}),
            (
                "head",
                heads,
                {head.index for head in candidates if not layers or head.layer in layers},
            ),
        ):
            for number in numbers or ():
                if number not in known:
                    raise UsageError(_range(what, number, self.layout, names))
        chosen = {
            head
            for head in candidates
            if (not layers or head.layer in layers) and (not heads or head.index in heads)
        }

        def some(maps: Mapping[HeadUse, Map]) -> dict[HeadUse, Map]:
            return {run: attention for run, attention in maps.items() if run.head in chosen}

        return replace(
            self,
            tokens={name: self.tokens[name] for name in names},
            before=some(self.before),
            after=None if self.after is None else some(self.after),
        )

    def save(self, folder: Path, data: Mapping[str, object]) -> None:
        """attention.npz with the maps, and attention.json with `data`, which is written last."""
        folder.mkdir(parents=True, exist_ok=True)
        sides = {"before": self.before, "after": self.after or {}}
        arrays: dict[str, Any] = {"about": json.dumps(header("attention-maps"))} | {
            f"{side}/{run.head}/{run.run}": attention.astype("float16")
            for side, by_head in sides.items()
            for run, attention in by_head.items()
        }
        if self.picture is not None:
            arrays["picture"] = self.picture.pixels
        with whole(folder / "attention.npz") as partial:
            np.savez_compressed(partial, **arrays)
        write_json(folder / "attention.json", header("attention") | dict(data))

    def to_json(self) -> dict[str, object]:
        """Tokens, and a row for each head: not the maps themselves."""
        data: dict[str, object] = {
            "text": self.text,
            "target": self.target,
            "cut": self.cut,
            "tokens": {
                name: {"queries": list(tokens.queries), "keys": list(tokens.keys)}
                for name, tokens in self.tokens.items()
            },
            "heads": list(self.rows()),
        }
        if self.picture is not None:
            data["picture"] = self.picture.grid._asdict()
        if self.mask is not None:
            data["kept"] = self.mask.pattern
        return data

    def rows(self) -> Iterator[dict[str, Any]]:
        """For each head: entropy in bits, mean distance, the token most looked at; the same
        `after` pruning (None for a head that is gone) with the divergence between the two."""
        for run, before in self.before.items():
            head = run.head
            row = {"stack": head.stack, "layer": head.layer, "head": head.index, "run": run.run}
            row |= self._said(head.stack, before)
            if self.after is not None:
                after = self.after.get(run)
                row["after"] = None if after is None else self._said(head.stack, after)
                row["divergence"] = None if after is None else _apart(before, after)
            yield row

    def _said(self, stack: str, attention: Map) -> dict[str, Any]:
        p = attention.astype(np.float64)
        attends = p.sum(1) > 0  # a row that looks nowhere is no distribution
        p = p[attends] / p[attends].sum(1, keepdims=True)
        if not len(p):
            return {"entropy": None, "distance": None, "most_attended": None}
        entropy = -(p * np.log2(np.where(p > 0, p, 1))).sum(1).mean()
        # the positions of two different texts have no distance
        gaps = np.abs(np.flatnonzero(attends)[:, None] - np.arange(p.shape[1]))
        counts = np.ones(len(p), dtype=bool)
        if self.picture is not None:
            gaps = self.picture.distances()[attends]
            counts = np.flatnonzero(attends) >= self.picture.grid.start
        looked = p.mean(0)
        position, keys = int(looked.argmax()), self.tokens[stack].keys
        return {
            "entropy": float(entropy) + 0.0,
            "distance": None if stack == "cross" else float((p * gaps)[counts].sum(1).mean()),
            "most_attended": {
                "token": keys[position] if len(keys) == len(looked) else None,
                "position": position,
                "share": float(looked[position]),
            },
        }


def _apart(before: Map, after: Map) -> float:
    """JS divergence in bits, mean over tokens."""
    p, q = (torch.from_numpy(values)[None, None] for values in (before, after))
    return float(js_divergence(p, q))


def _range(what: str, number: int, layout: Layout, stacks: Sequence[str]) -> str:
    counts = ", ".join(f"{name} {write_counts(layout[name].heads)}" for name in stacks)
    return f"There is no {what} {number}: this model's heads per layer are {counts}, from 0."
