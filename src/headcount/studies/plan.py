"""What a study file asks for, as values: its settings and its runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from headcount.base.digest import plain_digest
from headcount.base.errors import UsageError
from headcount.base.options import OptionsError
from headcount.base.text import printable, short
from headcount.runs.run import Run
from headcount.studies.written import SHIPPED

LONGEST = 150
"""Bytes of a study's name: its files have longer ones while they are written."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a study file says beside its runs."""

    name: str = ""
    """What the study is called; the file's name when left out."""
    about: str = ""
    """What it is for, in a sentence."""
    out: Path | None = None
    """The folder of its records; a folder of the study's name beside the file when left out."""
    keep: Literal["records", "models"] = "records"
    """Keep the models of prunings and trainings, or of those only that other runs start from."""
    threads: int = 1
    """Threads of a run on a processor: with another number the last digits can differ."""
    retries: int = 2
    """How often a run is tried again whose process was killed."""
    lease: float = 60.0
    """Seconds without a sign of life after which a run is taken over from its worker."""

    def __post_init__(self) -> None:
        if self.threads < 1 or self.retries < 0 or self.lease <= 0:
            raise UsageError("threads is 1 or more, retries 0 or more, lease above 0 seconds.")


def require_name(name: str) -> None:
    """Refuse a name of a study that cannot be that of its files, or leads to others."""
    text = printable(name)
    if text != name or "/" in name or "\\" in name or name.strip(". ") == "":
        rule = "a study's name is also that of its files: it has no slashes and is not '..'"
    elif len(os.fsencode(name)) > LONGEST:
        rule = f"a study's name is also that of its files: it has {LONGEST} letters at most"
    else:
        return
    text = f"{rule}, unlike {short(name)}."
    raise OptionsError(text, [(("name",), text)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """One run of a study, and where it stands in it."""

    group: str
    axes: Mapping[str, Any]
    """Short name of each axis -> its value, for tables."""
    run: Run
    launch: tuple[str, ...] = ()
    """What starts the run as several processes, such as accelerate launch."""
    keep: bool = False
    """Keep the model it makes."""
    label: str = ""
    """What a log calls it, where its method and ratio do not tell it from others."""
    seconds: float | None = None
    """What the file says a run of the group takes; finished runs know it better."""

    @property
    def key(self) -> str:
        """The run's key."""
        return self.run.key


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """All runs of a study file."""

    path: Path
    settings: Settings
    cells: Sequence[Cell]
    data: Mapping[str, Any] = field(repr=False)
    """The file as it was read."""

    @property
    def name(self) -> str:
        """What the study is called."""
        return self.settings.name or self.path.stem

    @property
    def out(self) -> Path:
        """The folder of its records, unless the caller says another."""
        if self.settings.out is not None:
            return self.settings.out
        shipped = self.path.parent == SHIPPED  # no place to write to
        return Path(self.name) if shipped else self.path.parent / self.name

    @cached_property
    def by_key(self) -> dict[str, Cell]:
        """Every run once, those that others start from before them."""
        cells: dict[str, Cell] = {}
        asked_for = {cell.key: cell for cell in self.cells}

        def add(run: Run, cell: Cell | None) -> None:
            if run.key in cells:
                return
            for before in run.inputs:
                add(before, asked_for.get(before.key))
            cells[run.key] = cell or Cell(group="", axes={}, run=run)

        for cell in self.cells:
            add(cell.run, cell)
        needed = {before.key for cell in cells.values() for before in cell.run.inputs}
        return {key: replace(cell, keep=cell.keep or key in needed) for key, cell in cells.items()}

    @property
    def digest(self) -> str:
        """A short name for everything that is asked, whatever the file looks like."""
        return plain_digest(sorted(self.by_key))
