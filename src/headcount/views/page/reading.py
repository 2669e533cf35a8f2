"""Values out of files that may lack them, and into the page: numbers, names, packed arrays."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

import numpy as np

from headcount.base.text import printable
from headcount.heads import Layout, Mask

Made = TypeVar("Made")
Values = list[float | None]
NAME, NOTE, COMMAND = 60, 400, 20_000
"""Characters that are shown of a name, a note and a command: a shortened one cannot be run."""


class Packed(str):
    """An array as text, which is not shortened."""


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __bool__(self) -> bool:
        return self.value is not None


def interval(value: object) -> Interval | None:
    """A value with its interval, whatever its key is; None for anything else."""
    if not isinstance(value, Mapping):
        return None
    keys = [key for key in ("value", "score", "mean", "median") if key in value]
    middle = value[keys[0]] if keys else None
    return Interval(number(middle), number(value.get("low")), number(value.get("high")))


def number(value: object) -> float | None:
    """A finite number as it is; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return None
    return value if math.isfinite(value) else None  # pyright: ignore[reportReturnType]


def numbers(values: Iterable[object]) -> Values:
    """A list of numbers with None for anything else."""
    return [number(value) for value in values]


def text(value: object, most: int = NAME) -> str:
    """Something as text that is safe to show, not too long."""
    shown = printable(str(value), lines=True)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def fill(kind: type[Made], row: Mapping[str, object], **given: object) -> Made:
    """A flat dataclass from a row of JSON, every field as its type says.

    What is missing or of another type is None; fields that are `given` are taken as they are.
    """
    readers = {
        float | None: number,
        str: lambda value: "" if value is None else text(value),
        bool: bool,
        Interval | None: interval,
        Values | None: lambda value: numbers(value) if isinstance(value, list) else None,
    }
    hints = get_type_hints(kind)
    read = {name: readers[hints[name]](row.get(name)) for name in hints if name not in given}
    return kind(**read, **given)


def plain(value: object) -> Any:
    """Anything as JSON for the page: text that is safe to show, None for what is no number."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {text(name, NOTE): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, str):
        return value if isinstance(value, Packed) else text(value, COMMAND)
    return value if value is None or isinstance(value, bool) else number(value)


def parts_of(model: object) -> list[str]:
    """The folders of a path, or the parts of a name."""
    return [part for part in str(model).replace("\\", "/").split("/") if part not in ("", ".")]


def short_name(model: object) -> str:
    """A model's name: the end of its path."""
    if isinstance(model, Mapping):  # another run
        model = f"{model.get('kind', 'run')} of {short_name(model.get('model', '?'))}"
    parts = parts_of(model)
    return text(parts[-1] if parts else model, 80)


def by_head(by_layer: Mapping[str, Sequence[Sequence[object]]], layout: Layout) -> Values:
    """Stack -> layer -> head as one list in the layout's order."""
    return [number(by_layer[h.stack][h.layer][h.index]) for h in layout]


def bits(mask: Mask) -> str:
    """The heads that are kept as hexadecimal digits, four heads each, the first head highest."""
    flags = "".join("1" if head in mask.kept else "0" for head in mask.layout)
    flags += "0" * (-len(flags) % 4)
    return "".join(f"{int(flags[at : at + 4], 2):x}" for at in range(0, len(flags), 4))


def packed(values: np.ndarray | Sequence[float], kind: str) -> Packed:
    """An array as base64 of its little-endian bytes, deflated."""
    array = np.ascontiguousarray(np.asarray(values).astype(np.dtype(kind).newbyteorder("<")))
    return Packed(base64.b64encode(zlib.compress(array.tobytes(), 9)).decode("ascii"))


@dataclass(frozen=True)
class Quantised:
    """Numbers as whole steps from `low`, each of size `scale`, packed."""

    kind: str
    low: float
    scale: float
    data: Packed


def quantised(values: np.ndarray, *, wide: bool) -> Quantised:
    """Numbers as steps between the smallest and the largest; 65,535 steps, or 255."""
    low, high = float(np.min(values, initial=0.0)), float(np.max(values, initial=0.0))
    scale = (high - low) / (65535 if wide else 255) or 1.0
    steps = np.rint((np.asarray(values, np.float64) - low) / scale)
    kind = "u2" if wide else "u1"
    return Quantised(kind, low, scale, packed(steps, kind))
