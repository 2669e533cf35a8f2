"""Files that are rows: images and sounds, listed in folders, known by their content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from headcount.base.errors import NotFoundError, UsageError

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
LARGEST = 2**28
"""Bytes of the largest file that is read."""


def files_in(folder: Path, suffixes: Sequence[str], what: str) -> list[Path]:
    """All files of a folder and of those in it with these endings, by name; hidden ones are not."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in suffixes and not path.name.startswith(".") and path.is_file()
    )
    if not files:
        raise NotFoundError(f"There is no {what} in '{folder}' ({', '.join(suffixes)}).")
    return files


def digests(files: Iterable[Path]) -> list[str]:
    """A short name for the content of every file: equal files are equal rows."""
    return [hashlib.blake2b(read_bytes(path), digest_size=16).hexdigest() for path in files]


def read_bytes(path: Path) -> bytes:
    """What is in a file, which must be there and of a sane size."""
    if not os.path.isfile(path):
        raise NotFoundError(f"There is no file '{path}'.")
    size = path.stat().st_size
    if not size:
        raise UsageError(f"'{path}' is empty.")
    if size > LARGEST:
        raise UsageError(f"'{path}' has {size:,} bytes, more than {LARGEST:,}: it is no row.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"Cannot read '{path}': {error.strerror or error}.") from error


def files_of(table: Path, names: Sequence[str]) -> list[Path]:
    """The files that the rows of a table name, from its folder; a missing one with its row."""
    files = [table.parent / name for name in names]
    for row, (name, path) in enumerate(zip(names, files, strict=True), start=1):
        if not name.strip() or not os.path.isfile(path):  # False of names too long, too
            raise NotFoundError(f"'{table}' row {row}: there is no file '{path}'.")
    return files
