"""A user's own rows: classification or regression on one or two texts, from files or the hub."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks import hub
from headcount.tasks.files import Table, check_columns, listing, pick, read_table
from headcount.tasks.glue import classes, numbers
from headcount.tasks.parts import apart
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

talk = logging.getLogger("headcount")
STEMS = {"train": ("train",), "dev": ("dev", "validation", "valid", "val", "test")}


def classification(source: Source) -> Task:
    """Classes are the values of the label column in all splits, sorted: numbers by value."""
    tables = _tables(source, "classification")
    values = {value for _, table in tables.values() for value in table[_label(source)]}
    _require_classes(values, tables, _label(source))
    names = tuple(sorted(values, key=class_sort_key))
    order = {name: name for name in names}
    splits = {
        split: Examples(_texts(table, source), classes(table[_label(source)], order, path))
        for split, (path, table) in tables.items()
    }
    metrics = ("accuracy", "f1", "matthews") if len(names) == 2 else ("accuracy", "matthews")
    notes = test_as_dev({split: path for split, (path, _) in tables.items()}, source)
    return _task("classification", source, names, metrics, splits, notes)


def regression(source: Source, kind: str = "regression") -> Task:
    """Scores are numbers; predictions are ranked against them (Spearman)."""
    tables = _tables(source, kind)
    splits = {
        split: Examples(_texts(table, source), numbers(table[_label(source)], path))
        for split, (path, table) in tables.items()
    }
    notes = test_as_dev({split: path for split, (path, _) in tables.items()}, source)
    return _task(kind, source, (), ("spearman", "pearson"), splits, notes)


def origin(source: Source) -> str:
    """What the rows come from, in short; empty where they were never a file's."""
    if source.in_memory:
        return ""
    if source.hub is not None:
        return source.hub
    return next(path.name for path in (source.dev, source.train, source.data) if path is not None)


def evaluated(splits: Iterable[str]) -> str:
    """The split that is scored when none is named."""
    names = list(splits)
    return "dev" if "dev" in names else names[0]


def test_as_dev(splits: Mapping[str, Path], source: Source) -> tuple[str, ...]:
    """A note, logged here, that a test split is scored as dev."""
    path = splits.get("dev")
    if path is None or path.stem != "test" or "train" not in splits or source.dev is not None:
        return ()
    note = (
        f"'{path.name}' is used as dev, because there is no dev or validation split: what is "
        "selected by its score is selected on test rows. Pass --train and --dev for other files."
    )
    talk.warning("%s", note)
    return (note,)


def find_splits(source: Source, suffixes: tuple[str, ...] | None = None) -> dict[str, Path]:
    """Files of the train and dev splits, from explicit paths, a folder, or a single file.

    A single file is split into parts by who reads it.
    """
    files = {"train": source.train, "dev": source.dev}
    if source.data is not None and source.data.is_file():
        files["dev"] = files["dev"] or source.data
    elif source.data is not None:
        folder = source.folder()
        for split, stems in STEMS.items():
            picked = pick(folder, stems, suffixes) if suffixes else pick(folder, stems)
            files[split] = files[split] or picked
        if not any(files.values()):
            raise NotFoundError(f"No train or dev file in '{folder}'; found {listing(folder)}.")
    present = {split: path for split, path in files.items() if path is not None}
    for path in present.values():
        if not path.is_file():
            raise NotFoundError(f"There is no file '{path}'.")
    return present


def read_splits(
    source: Source, columns: list[str], kind: str, *, nested: bool = False
) -> dict[str, tuple[Path, Table]]:
    """The named columns of every split there is, from files or from the hub."""
    if source.hub is not None:
        name, _, config = source.hub.partition(":")
        return {
            split: (
                Path(name) / hub_split,
                hub.columns(
                    hub.fetch(name, config or None, hub_split, kind), columns, name, nested=nested
                ),
            )
            for split, hub_split in hub.split_names(name, config or None, kind).items()
        }
    files = _files(source, kind)
    return {
        split: (path, read_table(path, columns, nested=nested)) for split, path in files.items()
    }


def _files(source: Source, kind: str) -> dict[str, Path]:
    files = find_splits(source)
    if not files:
        raise UsageError(
            f"Task '{kind}' needs data: pass --data DIR, --train and --dev files, or --hub NAME."
        )
    return files


def check_source(source: Source, kind: str) -> None:
    """Refuse files that are not there and columns they do not have, from their first lines."""
    _require_columns(source, kind)
    if source.hub is None:
        for path in _files(source, kind).values():
            check_columns(path, [*source.columns, _label(source)])


def _require_columns(source: Source, kind: str) -> None:
    if len(source.columns) > 2:
        raise UsageError(f"A row has one or two texts, not {len(source.columns)}.")
    if not source.columns or source.label is None:
        raise UsageError(
            f"Task '{kind}' needs the names of the text and label columns: "
            "pass --columns COLUMN (two for pairs) and --label COLUMN."
        )


def _tables(source: Source, kind: str) -> dict[str, tuple[Path, Table]]:
    _require_columns(source, kind)
    return read_splits(source, [*source.columns, _label(source)], kind)


def _task(
    kind: str,
    source: Source,
    labels: tuple[str, ...],
    metrics: tuple[str, ...],
    splits: dict[str, Examples],
    notes: tuple[str, ...],
) -> Task:
    splits, parts = apart(splits, origin(source))
    return Task(
        name=kind,
        kind=kind,
        texts=source.columns,
        labels=labels,
        numbered=False,
        called=source.called(labels),
        metrics=metrics,
        loader=splits.__getitem__,
        splits=tuple(splits),
        evaluation=evaluated(splits),
        parts=parts,
        notes=notes,
    )


def _require_classes(
    values: set[str], tables: Mapping[str, tuple[Path, Table]], label: str
) -> None:
    """Refuse labels that are left out, and scores."""
    if "" in values:
        path, row = next(
            (path, table[label].index("") + 1)
            for path, table in tables.values()
            if "" in table[label]
        )
        raise UsageError(f"'{path}' has no label in row {row}: '{label}' is empty there.")
    scores = [value for value in values if re.fullmatch(r"-?\d*\.\d*[1-9]\d*", value)]
    if scores and all(re.fullmatch(r"-?\d*\.?\d+", value) for value in values):
        raise UsageError(
            f"The labels in '{label}' are numbers such as {min(scores)}, which are no classes: the "
            "task for scores is regression."
        )


def _texts(table: Table, source: Source) -> tuple[list[str], ...]:
    return tuple(table[column] for column in source.columns)


def _label(source: Source) -> str:
    return source.label or ""


def class_sort_key(value: str) -> tuple[int, float, str]:
    """Whole numbers by value, then everything else by name: 2 comes before 10."""
    return (0, int(value), "") if re.fullmatch(r"-?\d{1,18}", value) else (1, 0, value)
