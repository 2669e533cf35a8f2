"""Find what headcount wrote in folders and read it; what cannot be read is named and left out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.base.files import expanded, read_json, special_file
from headcount.runs.record import FORMAT

DEPTH = 6
"""How many folders deep is looked."""
MOST = 50_000
"""Files that are looked at before the rest is left out."""
ENDINGS = (".json", ".npz")
FOREIGN = {
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json", "vocab.json", "trainer_state.json",
    "preprocessor_config.json", "model.safetensors.index.json", "settings.json", "state.json",
}  # fmt: skip
"""What lies beside records and is not ours, or says nothing that the record does not."""


@dataclass(frozen=True, kw_only=True)
class ReportItem:
    """One file that says something."""

    kind: str
    """The kind of a record, or study, file (of a study), search, matrix, trace, attention, full or
    mask."""
    path: Path
    data: Any

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.path.parent

    @property
    def study(self) -> Path | None:
        """The folder of the study or search that this is a run of."""
        return self.folder.parent.parent if self.folder.parent.name == "runs" else None


@dataclass
class ReportInput:
    """Everything that was read, and what was left out."""

    items: list[ReportItem] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """(file, why)"""

    def of(self, *kinds: str) -> list[ReportItem]:
        """All items of some kinds."""
        return [item for item in self.items if item.kind in kinds]

    @cached_property
    def runs(self) -> dict[str, dict[str, Any]]:
        """The runs of studies by the names of their folders: what was asked."""
        return {
            item.folder.name: item.data["run"]
            for item in self.items
            if item.study and isinstance(item.data, dict) and isinstance(item.data.get("run"), dict)
        }


def walk(paths: Sequence[str | os.PathLike[str]]) -> ReportInput:
    """Read everything of headcount in files and folders."""
    found, seen = ReportInput(), set[Path]()
    for given in paths:
        path = expanded(given)
        if not path.exists():
            raise NotFoundError(f"There is no file or folder '{path}'.")
        if special := None if path.is_dir() else special_file(path):
            raise UsageError(f"'{path}' is {special}: name folders and files.")
        for file in _files(path, found):
            try:
                real = file.resolve()
                if real in seen:
                    continue
                seen.add(real)
                item = _read(file)
            except HeadcountError as error:
                found.skipped.append((str(file), str(error)))
                continue
            except (OSError, RuntimeError):  # as resolve says it
                found.skipped.append((str(file), "it is a link that leads to itself."))
                continue
            if item is not None:
                found.items.append(item)
    return found


def _files(path: Path, found: ReportInput) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    count = 0

    def unread(error: OSError) -> None:
        found.skipped.append((str(error.filename), f"it cannot be read: {error.strerror}."))

    for folder, folders, names in os.walk(path, onerror=unread):
        deep = len(Path(folder).relative_to(path).parts)
        kept = [name for name in folders if not name.startswith((".", "checkpoint-"))]
        if deep >= DEPTH and kept:
            found.skipped.append((folder, f"folders more than {DEPTH} deep are not looked into."))
            kept = []
        folders[:] = sorted(kept)
        for name in sorted(names):
            if not name.endswith(ENDINGS) or name.startswith(".") or name in FOREIGN:
                continue
            count += 1
            if count > MOST:
                found.skipped.append((str(path), f"only its first {MOST:,} files were read."))
                return
            yield Path(folder) / name


def _read(path: Path) -> ReportItem | None:
    """What a file holds; None where it is not ours."""
    if path.suffix == ".npz":
        return _arrays(path)
    data = read_json(path, "record")
    kind = _kind(path, data)
    return None if kind is None else ReportItem(kind=kind, path=path, data=data)


def _arrays(path: Path) -> ReportItem:
    if path.name == "gates.npz":
        from headcount.learned.trace import load_trace

        return ReportItem(kind="trace", path=path, data=load_trace(path))
    if path.name == "attention.npz":
        from headcount.base.arrays import read_npz

        return ReportItem(kind="maps", path=path, data=read_npz(path, "file of attention maps"))
    from headcount.likeness.result import load_redundancy

    return ReportItem(kind="matrix", path=path, data=load_redundancy(path))


def _kind(path: Path, data: Any) -> str | None:
    if not isinstance(data, dict):
        return None
    if "kind" in data and "format" in data:
        if data["format"] != FORMAT:
            raise UsageError(f"{path} has format {data['format']!r:.20}, and this reads {FORMAT}.")
        return str(data["kind"])
    if path.name == "search.json":
        return "search"
    if path.name == "full.json":
        return "full"
    if {"about", "full", "summary", "points"} <= set(data):
        return "study"
    if path.parent.name == "studies" and {"name", "asked", "runs"} <= set(data):
        return "file"
    if {"text", "tokens", "heads"} <= set(data):
        return "attention"
    if set(data) == {"layout", "kept"}:
        return "mask"
    if data.get("kind") == "roles" or {"quantities", "roles"} <= set(data):
        return "roles"
    return None
