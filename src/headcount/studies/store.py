"""Finished runs of a study, a JSON line each: the same call again computes only what is missing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

from headcount.files import append_line, locked, made_of, read_json, read_lines, whole, write_json
from headcount.studies.identity import require_same
from headcount.studies.notes import Note, log
from headcount.training.checkpoints import SETTINGS

RUNS = "runs.jsonl"
WORK = "work"
"""Where a run under way keeps what it can be resumed from."""

Item = TypeVar("Item")


@contextmanager
def held(folder: Path | None) -> Generator[None]:
    """Hold a study's folder while it is worked on: a second process is refused."""
    if folder is None:
        yield
    else:
        with locked(folder):
            yield


class Store(Generic[Item]):
    """Finished runs by their keys, in a folder where there is one.

    `kind` is the dataclass of a run, `key` what tells two runs apart, and `about` what all of them
    depend on: a folder that was begun with something else is refused. `note` gets what is to be
    told of what was found there.
    """

    def __init__(
        self,
        kind: Callable[..., Item],
        key: Callable[[Item], Hashable],
        folder: Path | None,
        about: Mapping[str, Any],
        *,
        file: str = RUNS,
        overwrite: bool = False,
        note: Note = log,
    ) -> None:
        self.folder, self.file, self.key = folder, file, key
        self.done: dict[Hashable, Item] = {}
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        if overwrite:
            shutil.rmtree(folder / WORK, ignore_errors=True)
            for name in (file, SETTINGS):
                (folder / name).unlink(missing_ok=True)
        settings = folder / SETTINGS
        if not settings.is_file():
            write_json(settings, dict(about))
        elif told := require_same(read_json(settings, "settings of a study"), about, folder):
            note(told)
        self._read(kind, note)

    def _read(self, kind: Callable[..., Item], note: Note) -> None:
        assert self.folder is not None
        path = self.folder / self.file
        rows, cut = read_lines(path, "runs of a study") if path.is_file() else ([], False)
        if cut:
            note(f"The last line of {path} was cut short and is left out: its run is done again.")
        for number, row in enumerate(rows, 1):
            item = made_of(kind, row, f"{path} is no runs of a study: line {number}")
            self.done[self.key(item)] = item
        # what a kill cut short is not to stand before the next run
        with whole(path) as partial:
            text = "".join(json.dumps(asdict(item)) + "\n" for item in self.done.values())  # pyright: ignore[reportArgumentType]
            partial.write_text(text, encoding="utf-8")

    def add(self, item: Item) -> Item:
        """Keep a run for good."""
        self.done[self.key(item)] = item
        if self.folder is not None:
            append_line(self.folder / self.file, asdict(item))  # pyright: ignore[reportArgumentType]
        return item
