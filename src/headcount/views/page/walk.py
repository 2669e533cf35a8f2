"""Find what headcount wrote in folders and read it; what cannot be read is named and left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.base.files import expanded, read_json, special_file
from headcount.base.header import require_header
from headcount.views.page.reading import COMMAND, text

Made = TypeVar("Made")
DEPTH = 6
"""How many folders deep files are searched for."""
MOST = 50_000
"""Files that are read before the rest is left out."""
ENDINGS = (".json", ".npz")
FOREIGN = {
    *("config.json", "generation_config.json", "preprocessor_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "model.safetensors.index.json", "trainer_state.json"),
    *("settings.json", "state.json", "predictions.json"),
}
"""Files of others, and files that say nothing that the record does not."""
DAMAGED = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError),
    *(OverflowError, ZeroDivisionError, HeadcountError),
)
PAGE_KINDS = {"curve": "study", "compare": "study", "sweep": "study", "plan": "file"}
"""Kinds of files -> what the page calls them, where that is another word."""


@dataclass(frozen=True, kw_only=True)
class ReportItem:
    """One file of the page."""

    kind: str
    """The kind of a record, or study, file (of a study), search, matrix, trace, attention, full or
    mask."""
    path: Path
    data: Any
    """A dict as JSON has it; of a matrix and a trace, the value itself."""

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self.path.parent

    @property
    def study(self) -> Path | None:
        """The folder of the study or search that this is a run of."""
        return self.folder.parent.parent if self.folder.parent.name == "runs" else None

    @property
    def search(self) -> Path | None:
        """The folder of the search that measured it for the page."""
        for folder in (self.folder, self.folder.parent):
            if folder.name == "details" and (folder.parent / "search.json").is_file():
                return folder.parent
        return None

    @property
    def command(self) -> str | None:
        """The command that made it, as the file says, or the record beside a file of arrays."""
        if isinstance(self.data, Mapping):
            return _command(self.data)
        for path in (self.path.with_suffix(".record.json"), self.folder / "record.json"):
            try:
                if line := _command(read_json(path, "record")):
                    return line
            except HeadcountError:
                continue
        return None


def _command(data: object) -> str | None:
    line = data.get("command") if isinstance(data, Mapping) else None
    return text(line, COMMAND) if line else None


@dataclass
class ReportInput:
    """Everything that was read, and what was left out."""

    items: list[ReportItem] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """(file, why)"""

    def of(self, *kinds: str) -> list[ReportItem]:
        """All items of some kinds."""
        return [item for item in self.items if item.kind in kinds]

    def skip(self, path: Path | str, reason: str) -> None:
        """Leave a file, or a part of it, out."""
        self.skipped.append((str(path), reason))

    @contextmanager
    def careful(self, item: ReportItem) -> Generator[None]:
        """An error in one file is noted, and the page is made without it."""
        try:
            yield
        except DAMAGED as error:
            known = isinstance(error, HeadcountError)
            reason = str(error) if known else f"a value is missing or wrong: {error}"
            self.skip(item.path, f"left out: {reason.removesuffix('.')}.")

    def each(self, items: Iterable[ReportItem], make: Callable[[ReportItem], Made]) -> list[Made]:
        """What `make` gives for every item; files that it cannot read are left out."""
        results: list[Made] = []
        for item in items:
            with self.careful(item):
                results.append(make(item))
        return results

    @cached_property
    def runs(self) -> dict[str, dict[str, Any]]:
        """The runs of studies, as their records have them, by the names of their folders."""
        return {
            item.folder.name: item.data["run"]
            for item in self.items
            if item.study and isinstance(item.data, dict) and isinstance(item.data.get("run"), dict)
        }


def walk(paths: Sequence[str | os.PathLike[str]]) -> ReportInput:
    """Read every file of headcount in files and folders."""
    report, seen = ReportInput(), set[Path]()
    for path in map(expanded, paths):
        if not path.exists():
            raise NotFoundError(f"There is no file or folder '{path}'.")
        if special := None if path.is_dir() else special_file(path):
            raise UsageError(f"'{path}' is {special}: name folders and files.")
        for file in _files(path, report):
            try:
                real = file.resolve()
                if real in seen:
                    continue
                seen.add(real)
                item = _read(file)
            except HeadcountError as error:
                report.skip(file, str(error))
                continue
            except (OSError, RuntimeError):  # raised by resolve
                report.skip(file, "it is a link that leads to itself.")
                continue
            if item is not None:
                report.items.append(item)
    return report


def _files(path: Path, report: ReportInput) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    count = 0

    def unread(error: OSError) -> None:
        report.skip(error.filename, f"it cannot be read: {error.strerror}.")

    for folder, folders, names in os.walk(path, onerror=unread):
        depth = len(Path(folder).relative_to(path).parts)
        inside = [name for name in folders if not name.startswith((".", "checkpoint-"))]
        if depth >= DEPTH and inside:
            report.skip(folder, f"folders more than {DEPTH} deep are not read.")
            inside = []
        folders[:] = sorted(inside)
        for name in sorted(names):
            if not name.endswith(ENDINGS) or name.startswith(".") or name in FOREIGN:
                continue
            count += 1
            if count > MOST:
                report.skip(path, f"only its first {MOST:,} files were read.")
                return
            yield Path(folder) / name


def _read(path: Path) -> ReportItem | None:
    """What a file holds; None where it is not of headcount."""
    if path.name == "gates.npz":
        from headcount.learned.trace import load_trace

        return ReportItem(kind="trace", path=path, data=load_trace(path))
    if path.name == "attention.npz":
        from headcount.base.arrays import read_npz

        return ReportItem(kind="maps", path=path, data=read_npz(path, "file of attention maps"))
    if path.suffix == ".npz":
        from headcount.likeness.result import load_redundancy

        return ReportItem(kind="matrix", path=path, data=load_redundancy(path))
    data = read_json(path, "record")
    kind = _kind(path, data)
    return None if kind is None else ReportItem(kind=kind, path=path, data=data)


def _kind(path: Path, data: object) -> str | None:
    if not isinstance(data, dict):
        return None
    if "kind" in data and "format" in data:
        kind = str(require_header(data, str(path), "file")["kind"])
        return PAGE_KINDS.get(kind, kind)
    if path.name in ("search.json", "full.json"):
        return path.stem
    if {"about", "full", "summary", "points"} <= set(data):
        return "study"
    if path.parent.name == "studies" and {"name", "asked", "runs"} <= set(data):
        return "file"
    if {"text", "tokens", "heads"} <= set(data):
        return "attention"
    if set(data) == {"layout", "kept"}:
        return "mask"
    return "roles" if {"quantities", "roles"} <= set(data) else None
