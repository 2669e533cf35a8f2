"""A study's folder: what all its runs depend on, and a folder with a record for each of them.

The same call again, or one with more runs, computes only what is missing; a folder that was begun
with something else is refused, with the difference shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError, UsageError
from headcount.base.files import discard, expanded, locked, read_json, write_json
from headcount.runs.identity import require_same
from headcount.runs.notes import Note, log
from headcount.runs.record import FILE, Record, id_of, load_record
from headcount.studies import outcome
from headcount.studies.ledger import STUDIES
from headcount.studies.points import require_cut
from headcount.training.checkpoints import SETTINGS
from headcount.training.evaluation import Evaluation

RUNS = "runs"
RUN = re.compile("[0-9a-f]{16}")
"""The name of a run's folder: the id of what it depends on."""


class Store:
    """Finished runs by the ids of their identities, in a folder where there is one."""

    def __init__(self, folder: Path | None, id: str) -> None:
        self.folder = folder
        self.id = id
        """Of the question that all its files answer."""
        self.done: dict[str, Record] = {}
        self.before: Evaluation | None = None
        """The model that every cut is held against."""

    def folder_of(self, id: str) -> Path | None:
        """Where a run's record and whatever else it leaves lies."""
        return None if self.folder is None else self.folder / RUNS / id

    def get(self, id: str) -> Record | None:
        """The record of a run that is done."""
        where = self.folder_of(id)
        if id not in self.done and where is not None and (where / FILE).exists():
            record = load_record(where)
            if record.id != id:
                raise UsageError(
                    f"{where / FILE} is the record of another run: delete its folder to have the "
                    "run done again."
                )
            require_cut(record, where / FILE)
            self.done[id] = record
        return self.done.get(id)

    def add(self, record: Record) -> Record:
        """Keep a record for good."""
        self.done[record.id] = record
        where = self.folder_of(record.id)
        if where is not None:
            record.save(where)
        return record

    def full(self) -> Evaluation | None:
        """The model with all its heads, where it was scored."""
        return self.before or outcome.kept(self.folder, self.id)

    def keep_full(self, evaluation: Evaluation) -> Evaluation:
        """Keep the score of the model with all its heads."""
        self.before = outcome.keep(evaluation, self.folder, self.id)
        return evaluation


@contextmanager
def opened(
    out: str | Path | None,
    about: Mapping[str, Any],
    *,
    results: Sequence[str] = (),
    overwrite: bool = False,
    note: Note = log,
) -> Generator[Store]:
    """The store of a study, held while it is worked on: a second process is refused.

    `results` are the names of what it comes to, most final first: `overwrite` deletes them, too.
    """
    store = Store(None if out is None else expanded(out), id_of(about))
    if store.folder is None:
        yield store
        return
    with locked(store.folder):
        settings = store.folder / SETTINGS
        if overwrite:
            _require_ours(store.folder, (*results, outcome.FILE))
            for name in (*results, outcome.FILE):
                discard(store.folder / name)
            _discard_runs(store.folder / RUNS)
            # last: until here it is the folder of the earlier question
            write_json(settings, dict(about))
        elif settings.exists():
            then = read_json(settings, "settings of a study")
            if text := require_same(then, about, store.folder):
                note(text)
        else:
            held = any((store.folder / name).exists() for name in (*results, RUNS))
            if held and store.full() is None:
                require_same(None, about, store.folder)
            write_json(settings, dict(about))
        yield store


def _require_ours(folder: Path, names: Sequence[str]) -> None:
    """Refuse to delete what no study of this kind has begun: it may be anybody's."""
    foreign = [name for name in names if os.path.lexists(folder / name)]
    if os.path.lexists(folder / SETTINGS):
        foreign = [] if _says(folder / SETTINGS, "task", "versions") else [SETTINGS]
    elif _says(folder / outcome.FILE, "scores"):
        foreign = []
    elif _foreign(folder / RUNS) or (folder / STUDIES).exists():
        foreign.append(RUNS)
    if foreign:
        raise UsageError(
            f"{folder / foreign[0]} is nothing that this study wrote, so --overwrite does not "
            "delete it: choose another --out, or delete it yourself."
        )


def _says(path: Path, *names: str) -> bool:
    """Whether a file of a study is there, by one of the names in it."""
    try:
        data = read_json(path, "file of a study", 2**30)
    except HeadcountError:
        return False
    return isinstance(data, dict) and not data.keys().isdisjoint(names)


def _foreign(runs: Path) -> bool:
    """Whether there is anything but runs in a folder of runs."""
    return any(not RUN.fullmatch(path.name) for path in runs.glob("*"))


def _discard_runs(runs: Path) -> None:
    """Delete the runs of a study; what else lies beside them stays."""
    for path in sorted(runs.glob("*")) if _foreign(runs) else [runs]:
        if path == runs or RUN.fullmatch(path.name):
            discard(path)
