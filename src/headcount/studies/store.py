"""Finished runs of a study, a JSON line each: the same call again computes only what is missing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

from headcount.files import whole
from headcount.training import checkpoints

RUNS = "runs.jsonl"
WORK = "work"
"""Where a run under way keeps what it can be resumed from."""

Item = TypeVar("Item")


class Store(Generic[Item]):
    """Finished runs by their keys, in a folder where there is one.

    `kind` is the dataclass of a run, `key` what tells two runs apart, and `about` what all of them
    depend on: a folder that was begun with something else is refused.
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
    ) -> None:
        self.folder, self.file, self.key = folder, file, key
        self.done: dict[Hashable, Item] = {}
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        if overwrite:
            shutil.rmtree(folder / WORK, ignore_errors=True)
            for name in (file, checkpoints.SETTINGS):
                (folder / name).unlink(missing_ok=True)
        checkpoints.require_same_settings(folder, about)
        checkpoints.write_json(folder / checkpoints.SETTINGS, dict(about))
        path = folder / file
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        for line in lines:
            if line.endswith("}"):  # not one that a kill cut short
                item = kind(**json.loads(line))
                self.done[key(item)] = item
        # what a kill cut short is not to stand before the next run
        with whole(path) as partial:
            text = "".join(_line(item) for item in self.done.values())
            partial.write_text(text, encoding="utf-8")

    def add(self, item: Item) -> Item:
        """Keep a run for good."""
        self.done[self.key(item)] = item
        if self.folder is not None:
            with (self.folder / self.file).open("a", encoding="utf-8") as file:
                file.write(_line(item))
        return item


def _line(item: Any) -> str:
    return json.dumps(asdict(item)) + "\n"
