"""The first keys of every JSON file that headcount writes: `format`, `version` and `kind`.

    write_json(path, header("mask") | mask.to_json())
    require_header(read_json(path, "record"), str(path))

`format` says whose file it is, `version` which form of it, `kind` what is in it: the kind of run of
a record, or mask, curve, compare, sweep, search, plan, full, predictions, training,
training-settings, attention, paper-item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headcount.base.errors import UsageError

FORMAT = "headcount"
VERSION = 1


class FormatError(UsageError):
    """A whole file, in a version that this headcount does not read."""


def header(kind: str) -> dict[str, Any]:
    """The header of a file.

    >>> header("mask")
    {'format': 'headcount', 'version': 1, 'kind': 'mask'}
    """
    return {"format": FORMAT, "version": VERSION, "kind": kind}


def require_header(data: object, where: str, what: str = "record") -> Mapping[str, Any]:
    """Refuse what has no header, and, by its name, what has that of another version."""
    types = {"format": str, "version": int, "kind": str}
    whole = isinstance(data, Mapping) and all(
        isinstance(data.get(name), wanted) for name, wanted in types.items()
    )
    if not isinstance(data, Mapping) or not whole or data["format"] != FORMAT:
        raise UsageError(f"{where} is no {what} of headcount.")
    if data["version"] != VERSION:
        raise FormatError(
            f"{where} has version {data['version']}, and this headcount reads {VERSION}: use the "
            "version that wrote it, or a newer one."
        )
    return data
