"""Files and folders that appear whole or not at all, are read with care, and have one writer.

with whole(path) as partial: ...          # a file
with whole_folder(path) as made: ...      # a folder
data = read_json(path, "record")          # one sentence when it is damaged or too large
with locked(folder): ...                  # a second process is refused
"""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TextIO, TypeVar, Union, get_args, get_origin

from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.base.faults import danger
from headcount.base.partials import begun, sweep
from headcount.base.text import short

LOCK = ".lock"
LARGEST = 64 * 2**20
"""Bytes of the largest JSON file that is read: ours have a few thousand."""
DEEPEST = 64
"""How deep lists and objects may be nested."""
LINES = 2**30
"""Bytes of the largest file of lines."""
PIECE = 2**20
SPECIAL = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""What a path may lead to that has no contents to read whole, or to put others in the place of."""

Row = TypeVar("Row")


@contextmanager
def whole(path: str | os.PathLike[str]) -> Generator[Path]:
    """A temporary name beside `path` to write to; it takes its place when all went well."""
    if special := special_file(Path(path)):
        raise HeadcountError(f"Cannot write {path}: it is {special}.")
    path = _followed(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # the ending stays, for writers that go by it; the number keeps two runs apart
        name = f".{path.stem}.{os.getpid()}.partial{path.suffix}"
        with begun(path, lambda: _touched(path.with_name(name))) as partial:
            rights = partial.stat().st_mode  # by the umask; a writer may put a private file there
            yield partial
            partial.chmod(rights)
            danger()
            partial.replace(path)
            danger()
    except OSError as error:
        raise cannot_write(path, error) from error


@contextmanager
def whole_folder(path: str | os.PathLike[str], *, replace: bool = False) -> Generator[Path]:
    """A temporary folder beside `path` to fill; it takes its place when all went well.

    With `replace` also the place of a folder that is there.
    """
    path = _followed(path)
    try:
        with partial_folder(path) as partial:
            yield partial
            share(partial)
            danger()
            if replace and path.is_dir() and any(path.iterdir()):
                _exchange(partial, path)
            else:
                partial.replace(path)
            danger()
    except OSError as error:
        raise cannot_write(path, error) from error


def _followed(path: str | os.PathLike[str]) -> Path:
    """Where a link leads: what it names is written, and the link stays."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)


def _exchange(complete: Path, path: Path) -> None:
    """Put a folder in the place of another, which goes once that is done."""
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    path.replace(old)
    danger()
    try:
        complete.replace(path)
    except BaseException:
        old.replace(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def partial_folder(path: Path) -> Generator[Path]:
    """A temporary folder beside `path`, for the caller to put in its place; it is gone after."""

    path.parent.mkdir(parents=True, exist_ok=True)
    with begun(path, lambda: _new_folder(path)) as partial:
        yield partial


def _new_folder(path: Path) -> Path:
    """A folder beside `path` with the rights that the umask leaves: mkdtemp's are private."""
    while True:
        folder = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        with suppress(FileExistsError):
            folder.mkdir()
            return folder


def share(folder: Path) -> None:
    """Let those who may read a folder read all files in it: safetensors writes private ones."""
    rights = stat.S_IMODE(folder.stat().st_mode) & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(rights)


def discard(path: Path) -> None:
    """Delete a file or folder, and what a kill left of one that was to take its place."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise HeadcountError(f"Cannot delete {path}: {error.strerror or error}.") from error
    danger()
    sweep(path)


def _touched(path: Path) -> Path:
    path.touch()
    return path


class _Patient(io.RawIOBase):
    """A file that keeps its failure to itself."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb", buffering=0)
        self.failure: OSError | None = None

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        try:
            while left and self.failure is None:
                left = left[self.file.write(left) :]
        except OSError as error:
            self.failure = error
        return len(memoryview(data).cast("B"))


@contextmanager
def patient(path: Path) -> Generator[Any]:
    """A file for writers that cannot bear a failure; what failed is raised in the end."""
    bearing = _Patient(path)
    try:
        yield bearing
    finally:
        bearing.file.close()
    if bearing.failure is not None:
        raise bearing.failure


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path with `~/` as the home; `./~x` and `~x` are names here, and never somebody's home."""
    text = os.fspath(path)
    if text.startswith("./~"):
        return Path.cwd() / text.removeprefix("./")  # a Path of it would be that of the home again
    return Path(os.path.expanduser(text) if text == "~" or text.startswith("~/") else text)


def cannot_write(path: Path, error: OSError) -> HeadcountError:
    """The refusal of a full disk, a missing right, or a folder in the way."""
    return HeadcountError(f"Cannot write {path}: {error.strerror or error}.")


def write_json(path: str | os.PathLike[str], data: object, *, indent: int | None = 2) -> None:
    """Write a JSON file, whole or not at all."""
    text = _json_text(data, indent)
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _json_text(data: object, indent: int | None = None) -> str:
    """JSON that can be written as UTF-8, whatever bytes a name in it has."""
    text = json.dumps(data, indent=indent, ensure_ascii=False, default=str) + "\n"
    halves = [letter for letter in set(text) if "\ud800" <= letter < "\ue000"]
    return text.translate({ord(half): f"\\u{ord(half):04x}" for half in halves})


def special_file(path: Path) -> str | None:
    """What is at a path where that is no plain file, in words; None for a file and for nothing."""
    try:
        return SPECIAL.get(stat.S_IFMT(path.stat().st_mode))
    except OSError:
        return None


def require_file(path: str | os.PathLike[str], kind: str) -> None:
    """Refuse what would be waited for, or never end: a pipe, a device; and a folder."""
    if special := special_file(Path(path)):
        raise NotFoundError(f"Cannot read the {kind} {path}: it is {special}, not a file.")


def require_plain_files(folder: Path) -> None:
    """Refuse a folder with a pipe or a device in it, before others open what they find there."""
    try:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise NotFoundError(f"Cannot read {folder}: {error.strerror or error}.") from error
    for path in paths:
        if not path.is_dir():
            require_file(path, "file")


def read_bytes(path: str | os.PathLike[str], kind: str, largest: int = LARGEST) -> bytes:
    """What a file holds; `kind` says in a refusal what it should have been."""
    path = Path(path)
    require_file(path, kind)
    data = bytearray()
    try:
        if path.stat().st_size <= largest:
            with path.open("rb") as file:  # its size may have been told wrongly, as in /proc
                while len(data) <= largest and (piece := file.read(PIECE)):
                    data += piece
            if len(data) <= largest:
                return bytes(data)
    except OSError as error:
        raise NotFoundError(f"Cannot read the {kind} {path}: {error.strerror or error}.") from error
    raise UsageError(f"{path} is no {kind}: it has more than {largest:,} bytes.")


def as_path(given: str | os.PathLike[str], kind: str) -> Path:
    """The path that was named; anything else is refused in a sentence."""
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"A {kind} is named by a text or a path, not {short(given)}.")
    return expanded(given)


def read_text(path: str | os.PathLike[str], kind: str, largest: int = LARGEST) -> str:
    """The text of a small file."""
    try:
        text = read_bytes(path, kind, largest).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no {kind}: it is not UTF-8 text.") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: str | os.PathLike[str], kind: str, largest: int = LARGEST) -> Any:
    """What a JSON file holds."""
    return parse_json(read_text(path, kind, largest), f"{path} is no {kind}")


def parse_json(text: str | bytes, complaint: str) -> Any:
    """What a JSON text holds; the refusal begins with `complaint`."""
    if not text.strip():
        raise UsageError(f"{complaint}: it is empty.")
    try:
        data = json.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
        if _too_deep(data):
            raise RecursionError
        return data
    except UnicodeDecodeError as error:
        raise UsageError(f"{complaint}: it is not UTF-8 text.") from error
    except RecursionError as error:
        raise UsageError(f"{complaint}: lists and objects are nested too deeply.") from error
    except ValueError as error:
        raise UsageError(f"{complaint}: {error}.") from error


def _too_deep(data: object) -> bool:
    """Whether lists and objects are nested so that others may fail on them: ours never are."""
    level = [data]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def read_lines(path: str | os.PathLike[str], kind: str) -> tuple[list[Any], bool]:
    """The JSON lines of a file, and whether its last line was cut short and left out."""
    # other line ends can stand inside a text
    *lines, last = read_bytes(path, kind, LINES).split(b"\n")
    rows: list[object] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            rows.append(parse_json(line, f"{path} is no {kind}: line {number}"))
    if not last.strip():
        return rows, False
    try:  # whole but for its end of line, or cut short
        row = parse_json(last, "")
    except UsageError:
        return rows, True
    # a number may have lost its last digits, an object cannot lose anything
    return ([*rows, row], False) if isinstance(row, dict) else (rows, True)


def require_fields(
    data: object, types: Mapping[str, object], complaint: str, optional: Collection[str] = ()
) -> None:
    """Refuse what is no JSON object, or lacks a field, or has one of another type."""
    if not isinstance(data, dict):
        raise UsageError(f"{complaint}: {short(data)} is no object.")
    for name, type_ in types.items():
        if name in data and not _fits(data[name], type_):
            raise UsageError(f"{complaint}: it has a wrong {short(name)}.")
        if name not in data and name not in optional:
            raise UsageError(f"{complaint}: it lacks {short(name)}.")


def _fits(value: Any, type_: object) -> bool:
    """Whether a JSON value can be of a type; what is inside of lists and objects is not asked."""
    if get_origin(type_) in (Union, UnionType):
        return any(_fits(value, option) for option in get_args(type_))
    if get_origin(type_) is Literal:
        return value in get_args(type_)
    plain = get_origin(type_) or type_
    if plain in (int, float):
        whole_number = isinstance(value, int) and not isinstance(value, bool)
        return (whole_number and abs(value) < 2**63) or (
            plain is float and isinstance(value, float)
        )
    json_type = {tuple: list, Mapping: dict, type(None): NoneType}.get(plain, plain)
    if json_type in (str, bool, list, dict, NoneType):
        return isinstance(value, json_type)
    return True


def append_line(path: str | os.PathLike[str], data: object) -> None:
    """One JSON line more, on the disk when this returns."""
    path = Path(path)
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(_json_text(data))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise cannot_write(path, error) from error


@contextmanager
def locked(folder: str | os.PathLike[str]) -> Generator[None]:
    """Hold a folder for this process; a second one is refused, a dead one's lock is taken over.

    The lock is the operating system's, so it goes with the process that holds it however that ends.
    """
    with _locked(Path(folder) / LOCK, f"'{folder}'", "folder"):
        yield


@contextmanager
def locked_file(path: Path) -> Generator[None]:
    """Hold a file that a run goes on from, likewise."""
    with _locked(path.with_name(path.name + LOCK), f"'{path}'", "file"):
        yield


@contextmanager
def _locked(path: Path, what: str, kind: str) -> Generator[None]:
    with _held(path, what, kind) as file:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _held(path: Path, what: str, kind: str) -> TextIO:
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
                f"{what} is being worked on by {holder}: wait for it, or use another {kind}."
            ) from error
        file.close()  # its last holder deleted it between our opening and our lock
