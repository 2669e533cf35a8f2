"""Values out of files that may lack them: numbers, intervals, names; and numbers packed as text."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from headcount.base.errors import HeadcountError
from headcount.base.text import printable
from headcount.heads import Layout, Mask
from headcount.views.page.walk import ReportInput, ReportItem

DAMAGED = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, ZeroDivisionError,
    HeadcountError,
)  # fmt: skip
LONGEST = 400
"""Characters of a name, a note or a command that are shown."""


@contextmanager
def careful(found: ReportInput, item: ReportItem) -> Generator[None]:
    """What goes wrong with one file is named, and the page is made without it."""
    try:
        yield
    except DAMAGED as error:
        reason = str(error) if isinstance(error, HeadcountError) else f"it lacks or bends {error}"
        found.skipped.append((str(item.path), f"left out: {reason.removesuffix('.')}."))


def number(value: Any) -> float | None:
    """A number as it is; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return None
    return value if math.isfinite(value) else None  # pyright: ignore[reportReturnType]


def numbers(values: Iterable[Any]) -> list[float | None]:
    """A list of numbers with None for what is none."""
    return [number(value) for value in values]


def bounds(value: Any) -> dict[str, float | None] | None:
    """A value with its interval, whatever it is called."""
    if not isinstance(value, Mapping):
        return None
    middle = next((value[name] for name in ("value", "score", "mean", "median") if name in value),
                  None)  # fmt: skip
    return {"value": number(middle), "low": number(value.get("low")),
            "high": number(value.get("high"))}  # fmt: skip


def text(value: Any, most: int = LONGEST) -> str:
    """Something as text that can be shown, not too long."""
    shown = printable(str(value), lines=True)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def short_name(model: Any) -> str:
    """A model's own name: the end of its path."""
    if isinstance(model, Mapping):  # another run
        model = f"{model.get('kind', 'run')} of {short_name(model.get('model', '?'))}"
    parts = [part for part in str(model).replace("\\", "/").split("/") if part not in ("", ".")]
    return text(parts[-1] if parts else model, 80)


def by_head(by_layer: Mapping[str, Sequence[Sequence[Any]]], layout: Layout) -> list[float | None]:
    """Stack -> layer -> head as one list in the layout's order."""
    return [number(by_layer[h.stack][h.layer][h.index]) for h in layout]


def bits(mask: Mask) -> str:
    """The heads that are kept as hexadecimal digits, four heads each, the first head highest."""
    flags = "".join("1" if head in mask.kept else "0" for head in mask.layout)
    flags += "0" * (-len(flags) % 4)
    return "".join(f"{int(flags[at : at + 4], 2):x}" for at in range(0, len(flags), 4))


def packed(values: Any, kind: str) -> str:
    """An array as base64 of its little-endian bytes, deflated."""
    array = np.ascontiguousarray(np.asarray(values).astype(np.dtype(kind).newbyteorder("<")))
    return base64.b64encode(zlib.compress(array.tobytes(), 9)).decode("ascii")


def quantised(values: np.ndarray, *, wide: bool) -> dict[str, Any]:
    """Numbers as whole steps between the smallest and the largest; 65,535 steps, or 255."""
    low, high = float(np.min(values, initial=0.0)), float(np.max(values, initial=0.0))
    steps = 65535 if wide else 255
    scale = (high - low) / steps or 1.0
    whole = np.rint((np.asarray(values, np.float64) - low) / scale)
    kind = "u2" if wide else "u1"
    return {"kind": kind, "low": low, "scale": scale, "data": packed(whole, kind)}
