"""Values of any kind by their content, and the rows of a run as its record says them.

What two values have in common is never where they lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from headcount.base.digest import digest
from headcount.models import fingerprint
from headcount.tasks.encoding import EncodedRows, rows_fingerprint


def told(value: object) -> str:
    """A value of any kind in a few words: itself when short, else a short name for its content.

    >>> told(0.5), told("l1"), told([0.1, 0.2])
    ('0.5', 'l1', '[0.1, 0.2]')
    """
    if isinstance(value, EncodedRows):
        return rows_fingerprint(value)
    if isinstance(value, str | Path) and _is_file(value):
        return f"{value} {digest(Path(value).read_bytes())}"
    if value is None or isinstance(value, str | int | float | Path):
        return str(value)
    if isinstance(value, list | tuple) and all(isinstance(item, int | float) for item in value):
        return str(list(value))
    if isinstance(value, list | tuple) and all(isinstance(item, str | Path) for item in value):
        return ", ".join(told(item) for item in value)
    return f"{type(value).__name__} {content(value)}"


def content(value: object) -> str:
    """A short name for what is in a value; two values with the same are interchangeable.

    >>> content(["a", "b"]) == content(["a", "b"]) != content(["ab"])
    True
    """
    return digest(len(piece).to_bytes(8, "little") + piece for piece in _pieces(value))


def _is_file(value: str | Path) -> bool:
    """Whether it names a file; a mask as JSON is longer than a name can be."""
    try:
        return Path(value).is_file()
    except (OSError, ValueError):
        return False


def _pieces(value: object) -> Iterator[bytes]:
    """The content of a nest of values, piece by piece."""
    yield type(value).__name__.encode()
    if value is None or isinstance(value, str | int | float | bytes):
        yield value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
    elif isinstance(value, Path):
        yield told(value).encode(errors="surrogateescape")
    elif isinstance(value, Tensor):
        yield f"{tuple(value.shape)}{value.dtype}".encode()
        yield fingerprint.raw(value).tobytes()
    elif isinstance(value, np.ndarray | np.generic):
        yield f"{value.shape}{value.dtype}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, EncodedRows):
        yield rows_fingerprint(value).encode()
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _pieces(name)
            yield from _pieces(item)
        yield b"end"
    elif isinstance(value, AbstractSet):
        yield from sorted(content(item).encode() for item in value)
        yield b"end"
    elif is_dataclass(value):
        for field in fields(value):
            yield field.name.encode()
            yield from _pieces(getattr(value, field.name))
    elif isinstance(value, Iterable) and not isinstance(value, Iterator):
        for item in value:
            yield from _pieces(item)
        yield b"end"
    else:
        yield repr(value).encode(errors="surrogatepass")


def used_rows(fingerprint: str, split: str, seed: int | None = None) -> dict[str, Any]:
    """Rows as a record tells them; `seed` is that of the sample, None for all of the split.

    >>> used_rows("512 rows 0a1b", "train", 0)
    {'split': 'train', 'n': 512, 'seed': 0, 'fingerprint': '0a1b'}
    """
    count, _, name = fingerprint.split(" ")
    return {"split": split, "n": int(count), "seed": seed, "fingerprint": name}


def given_rows(inputs: Any) -> dict[str, Any]:
    """Rows that were given with the call, as a record tells them."""
    if isinstance(inputs, EncodedRows):
        return used_rows(rows_fingerprint(inputs), "given")
    count = len(inputs) if hasattr(inputs, "__len__") else None
    return {"split": "given", "n": count, "seed": None, "fingerprint": None}


def used_inputs(rows: EncodedRows, name: str) -> dict[str, Any]:
    """Inputs without labels as a record tells them."""
    return used_rows(rows_fingerprint(rows), name)
