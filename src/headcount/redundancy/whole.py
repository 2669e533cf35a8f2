"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: str | os.PathLike[str]) -> Generator[Path]:
    """A temporary name beside `path` to write to; it takes its place when all went well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # the ending stays, for writers that go by it; the number keeps two runs apart
    partial = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
