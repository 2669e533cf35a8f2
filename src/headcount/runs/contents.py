"""Files and folders by what is in them: short names that do not depend on where something lies.

Nothing here needs torch: a study of thousands of runs is planned with it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from headcount.base.digest import digest, plain_digest
from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import expanded

MODEL = (".safetensors", ".bin", ".json", ".txt", ".model", ".spm", ".py", ".jinja")
"""Endings of the files of a model that a result depends on."""
FILE = {"file": True}
"""Metadata of a field of options whose text may name a file or folder."""
SYSTEM = ("/proc", "/sys")
"""Folders whose files are no data: some never end, and others wait."""
NOTES = {"record.json", "predictions.json", "result.json", "settings.json", "trainer_state.json"}
"""What a run left beside a model."""


def named_files(options: Any) -> Iterator[str]:
    """What the fields of some options name that may be a file or a folder.

    Those are paths, and texts in a field marked as one: `metadata={"typed": Path}` or `FILE`.
    """
    for field in fields(options):
        value = getattr(options, field.name)
        marked = field.metadata.get("file") or "Path" in str(field.metadata.get("typed", ""))
        for item in value if isinstance(value, list | tuple) else (value,):
            if is_dataclass(item):
                yield from named_files(item)
            elif isinstance(item, Path) or (marked and isinstance(item, str)):
                yield str(item)


def by_content(value: object, names: Collection[str]) -> object:
    """Plain data with the content of a file or folder in place of its name, for these names."""
    if isinstance(value, str):
        return (content_of(value) or value) if value in names else value
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return {name: by_content(item, names) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [by_content(item, names) for item in value]
    return value


def content_of(name: str) -> str | None:
    """A short name for what is in a file or folder; None where there is none of this name."""
    if not name or len(name) > 1024 or "\0" in name:
        return None
    path = expanded(name)
    try:
        if path.is_file():
            return _file(path)
        if not path.is_dir():
            return None
        _require_data(path)
        return plain_digest([(str(file.relative_to(path)), _file(file)) for file in _files(path)])
    except OSError as error:
        raise NotFoundError(f"Cannot read {path}: {error.strerror or error}.") from error


def _require_data(path: Path) -> None:
    """Refuse the root of the file system, and what the system shows of itself, as a model or data.

    Their files would be read for hours, or for ever.
    """
    real = Path(os.path.realpath(path))
    if real == real.parent or any(real.is_relative_to(folder) for folder in SYSTEM):
        raise UsageError(f"'{path}' is part of the system: name a folder or file of your own.")


def _files(folder: Path) -> list[Path]:
    """Files of a model, or of data: there also those in folders inside, as GLUE's tasks have."""
    inside = sorted(folder.iterdir())
    files = [path for path in inside if path.is_file() and _counts(path)]
    if (folder / "config.json").is_file():
        return files
    folders = (path for path in inside if path.is_dir() and not path.name.startswith("."))
    return files + [
        file
        for inner in folders
        if not (inner / "studies").is_dir()  # what a study writes beside data is no part of it
        for file in sorted(inner.iterdir())
        if file.is_file() and not file.name.startswith(".")
    ]


def _counts(path: Path) -> bool:
    """Whether a file in a folder is part of a model or of data."""
    if path.name.startswith(".") or path.name in NOTES or path.suffix == ".md":
        return False
    model = (path.parent / "config.json").is_file()
    return path.suffix in MODEL if model else True


def _file(path: Path) -> str:
    _require_data(path)
    about = path.stat()
    return _read(os.fspath(path.absolute()), about.st_size, about.st_mtime_ns, about.st_ino)


@lru_cache(maxsize=4096)
def _read(path: str, size: int, changed: int, inode: int) -> str:
    with open(path, "rb") as file:
        return digest(iter(lambda: file.read(2**22), b""), size=16)
