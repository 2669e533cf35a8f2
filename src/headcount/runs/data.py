"""Which rows a run used, as its record says it."""

from __future__ import annotations

from typing import Any

from headcount.tasks.encoding import EncodedRows, rows_fingerprint


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
