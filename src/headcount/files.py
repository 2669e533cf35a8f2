"""Files and folders that appear whole or not at all, are read with care, and have one writer.

with whole(path) as partial: ...          # a file
with whole_folder(path) as made: ...      # a folder
data = read_json(path, "record")          # one sentence when it is damaged or too large
with locked(folder): ...                  # a second process is refused
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from headcount.errors import HeadcountError, NotFoundError, UsageError

LOCK = ".lock"
LARGEST = 64 * 2**20
"""Bytes of the largest JSON file that is read: ours have a few thousand."""


@contextmanager
def whole(path: str | os.PathLike[str]) -> Generator[Path]:
    """A temporary name beside `path` to write to; it takes its place when all went well."""
    path = Path(path)
    # the ending stays, for writers that go by it; the number keeps two runs apart
    partial = path.with_name(f".{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Generator[Path]:
    """A temporary folder beside `path` to fill; it takes its place when all went well."""
    path = Path(path)
    made: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        yield made
        made.chmod(0o755)  # mkdtemp's folders are private
        made.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


def cannot_write(path: Path, error: OSError) -> HeadcountError:
    """The refusal of a full disk, a missing right, or a folder in the way."""
    return HeadcountError(f"Cannot write {path}: {error.strerror or error}.")


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write a JSON file, whole or not at all."""
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str) + "\n"
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def read_text(path: str | os.PathLike[str], kind: str, largest: int = LARGEST) -> str:
    """The text of a small file; `kind` says in a refusal what it should have been."""
    path = Path(path)
    try:
        if path.stat().st_size > largest:
            raise UsageError(f"{path} is no {kind}: it has more than {largest:,} bytes.")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise NotFoundError(f"Cannot read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no {kind}: it is not UTF-8 text.") from error


def read_json(path: str | os.PathLike[str], kind: str, largest: int = LARGEST) -> Any:
    """What a JSON file holds."""
    return parse_json(read_text(path, kind, largest), f"{path} is no {kind}")


def parse_json(text: str, complaint: str) -> Any:
    """What a JSON text holds; the refusal begins with `complaint`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{complaint}: {error}.") from error


def read_lines(path: str | os.PathLike[str], kind: str) -> tuple[list[Any], bool]:
    """The JSON lines of a file, and whether its last line was cut short and left out."""
    lines = read_text(path, kind, 2**30).splitlines(keepends=True)
    cut = bool(lines) and not lines[-1].endswith("\n")
    rows: list[Any] = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(parse_json(line, f"{path} is no {kind}: line {number}"))
        except UsageError:
            if number < len(lines):
                raise
            return rows, True
    if cut and not isinstance(rows[-1], dict):  # a number may have lost its last digits
        return rows[:-1], True
    return rows, False


def append_line(path: str | os.PathLike[str], data: Any) -> None:
    """One JSON line more, on the disk when this returns."""
    path = Path(path)
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise cannot_write(path, error) from error


@contextmanager
def locked(folder: str | os.PathLike[str]) -> Generator[None]:
    """Hold a folder for this process; a second one is refused, a dead one's lock is taken over.

    The lock is the operating system's, so it goes with the process that holds it however that ends.
    """
    path = Path(folder) / LOCK
    with _held(path) as file:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _held(path: Path) -> TextIO:
    """The lock's file, opened and locked."""
    import fcntl  # not on Windows, where only this needs it

    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise cannot_write(path.parent, error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise UsageError(
                f"'{path.parent}' is being worked on by {holder}: wait for it, or use another "
                "folder."
            ) from error
        file.close()  # its last holder deleted it between our opening and our lock
