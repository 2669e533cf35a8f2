"""Data that are in Python already, as a task: lists of rows, data sets and data frames.

    task = hc.task({"train": rows, "dev": others}, kind="classification", columns="text", label="y")
    hc.prune(model, "surgeon", ratio=0.5, task=task)

Rows are what the lines of a JSON-lines file are, and are read by the same readers: a task of rows
equals that of their file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headcount.base.digest import digest
from headcount.base.errors import HeadcountError, UsageError
from headcount.base.names import require, unknown
from headcount.base.text import short
from headcount.tasks.catalog import TASKS, open_task, task_on
from headcount.tasks.kinds import TASK_KINDS, task_kind
from headcount.tasks.own import STEMS
from headcount.tasks.source import make_source
from headcount.tasks.task import Task

FORMS = "a list of dicts, a datasets.Dataset, a data frame, or a path"
SPLITS = tuple(stem for stems in STEMS.values() for stem in stems)
ONE = "rows"
"""What a single split is called."""
TEXT = "text"
"""The column of rows that are texts."""
Row = dict[str, object]
Paths = str | os.PathLike[str]


def task(
    data: Paths | Iterable[object] | Mapping[str, object] | None = None,
    *,
    kind: str,
    columns: str | Sequence[str] | None = None,
    label: str | None = None,
    labels: Mapping[str, str] | None = None,
    metrics: str | Sequence[str] | None = None,
    hub: str | None = None,
    languages: Sequence[str] | None = None,
    window: int | None = None,
    stride: int | None = None,
    size: int | None = None,
) -> Task:
    """A task on your own data, for whatever takes the name of one.

    `data` is a list of dicts (or of texts, for kinds of one text), a `datasets.Dataset`, a pandas
    data frame, a file or a folder; or a dict of these by split: `train`, and `dev` (also
    `validation` or `test`). A single one is split, as a single file is. `kind` is one of the kinds
    of `headcount ls tasks`, or the name of any task there. `columns` names the text columns, one or
    two, `label` the column of labels; `labels` says what the model calls a label. `metrics` chooses
    among the task's metrics: the first is its score. `hub` is a data set of the hub in place of
    `data`; `languages`, `window`, `stride` and `size` are those of the command line.

    Tasks of files are opened again by their paths, in any process. Rows in memory are known by
    their content: records name it, and only this process can compute with them.
    """
    settings: dict[str, object] = {
        "columns": columns, "label": label, "labels": labels, "metrics": metrics, "hub": hub,
        "languages": languages, "window": window, "stride": stride, "size": size,
    }  # fmt: skip
    if data is None or isinstance(data, str | os.PathLike):
        return open_task(kind, data=data, **settings)
    splits: dict[str, object] = {ONE: data}
    if isinstance(data, Mapping):
        splits = {str(name): value for name, value in data.items()}
    if not splits:
        raise UsageError("There is no data: not a single split.")
    for name in splits:
        if name not in SPLITS and isinstance(data, Mapping):
            says = f"Data are {FORMS}, or a dict of these by split, and {short(name)} is no split"
            raise unknown(says, name, SPLITS)
    paths = [value for value in splits.values() if isinstance(value, str | os.PathLike)]
    if paths:
        if len(paths) < len(splits):
            raise UsageError("Some splits are paths and some are rows: pass one or the other.")
        other = {stem: split for split, stems in STEMS.items() for stem in stems}
        return open_task(kind, **{other[name]: value for name, value in splits.items()}, **settings)
    return _of_rows(kind, splits, settings)


def _of_rows(kind: str, splits: Mapping[str, object], settings: dict[str, Any]) -> Task:
    """The task of rows, by way of the files that its reader takes."""
    if kind in TASKS and kind not in TASK_KINDS:
        raise UsageError(
            f"The task '{kind}' reads files of its own: rows have a kind, such as classification "
            "(headcount ls tasks)."
        )
    known = task_kind(require("kind of task", kind, [entry.name for entry in TASK_KINDS]))
    if not known.rows_of_tables:
        raise UsageError(f"Task '{kind}' reads files of another form than rows: pass their path.")
    tables = {name: _rows(value, name) for name, value in splits.items()}
    every = [row for table in tables.values() for row in table]
    if settings["columns"] is None and all(row.keys() == {TEXT} for row in every):
        settings["columns"] = TEXT
    given, label = settings["columns"] or (), settings["label"]
    columns: tuple[str, ...] = (given,) if isinstance(given, str) else tuple(given)
    needed = (*columns, *(() if label is None else (label,)))
    for name, table in tables.items():
        _check(table, needed, label, name)
    if label is not None:
        _require_one_kind([row[label] for row in every], label)
    media = "input_ids" not in known.reads
    if media and not columns:
        raise UsageError(f"Rows of {kind} name their files: pass columns='PATH', its column.")
    path = next(iter(columns)) if media else None
    texts = {name: "".join(_lines(table, needed, path, name)) for name, table in tables.items()}
    with TemporaryDirectory(prefix="headcount-") as folder:
        for name, text in texts.items():
            Path(folder, f"{name}.jsonl").write_text(text, encoding="utf-8")
        data = Path(folder, f"{ONE}.jsonl") if ONE in texts else folder
        try:
            opened = task_on(kind, make_source(data=data, in_memory=ONE, **settings))
            loaded = {split: opened.load(split) for split in opened.splits}
        except HeadcountError as error:
            error.args = (str(error).replace(f"{folder}{os.sep}", "").replace(".jsonl'", "'"),)
            raise
    assert opened.source is not None
    sizes = " and ".join(f"{len(table)} of {name}" for name, table in tables.items())
    content = f"{sizes}, {digest([name + text for name, text in texts.items()])}"
    source = replace(opened.source, data=None, in_memory=content)
    return replace(opened, loader=loaded.__getitem__, source=source)


def _rows(data: Any, split: str) -> list[Row]:
    """The rows of a split as dicts, with the names of classes in place of their numbers."""
    features: Mapping[str, Any] = getattr(data, "features", None) or {}
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        data = data.to_dict("records")
    if (
        not isinstance(data, Iterable)
        or isinstance(data, bytes | Mapping)
        or hasattr(data, "dtype")
    ):
        raise UsageError(f"'{split}' is {FORMS}, not a {type(data).__name__}.")
    rows = list(data)
    if not rows:
        raise UsageError(f"There is not a single row in '{split}'.")
    texts = isinstance(rows[0], str)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, str if texts else Mapping):
            kind = "texts" if texts else "dicts"
            raise UsageError(f"Rows are {kind}, and row {number} of '{split}' is {short(row, 40)}.")
    named = {
        name: getattr(feature, "feature", feature)
        for name, feature in features.items()
        if hasattr(getattr(feature, "feature", feature), "int2str")
    }
    return [
        {TEXT: row}
        if texts
        else {
            str(name): _class_names(value, named[name]) if name in named else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _class_names(value: Any, feature: Any) -> Any:
    """The names of a data set's class numbers, one or a list; -1 is its word for none."""
    if value is None or value == -1:
        return None
    return feature.int2str(value)


def _check(rows: Sequence[Row], needed: Sequence[str], label: str | None, split: str) -> None:
    """Refuse rows without a column or a value that they need."""
    for name in needed:
        if not any(name in row for row in rows):
            says = f"The rows of '{split}' have no column '{name}'"
            raise unknown(says, name, rows[0], has="They have")
        for number, row in enumerate(rows, start=1):
            value = row.get(name)
            if value is None or value != value:  # NaN, which data frames have for nothing
                what = "label" if name == label else "text"
                raise UsageError(f"Row {number} of '{split}' has no {what}: '{name}' is {value}.")


def _require_one_kind(values: Sequence[object], label: str) -> None:
    """Refuse labels of which some are texts and some numbers."""
    first: dict[str, object] = {}
    for value in values:
        number = hasattr(value, "__float__") and not isinstance(value, bool)
        kind = "numbers" if number else f"{type(value).__name__}s"
        first.setdefault({"strs": "texts", "bools": "true or false"}.get(kind, kind), value)
    if len(first) > 1:
        shown = " and ".join(f"{kind} ({short(value, 20)})" for kind, value in first.items())
        raise UsageError(f"Labels are of one kind, and '{label}' has {shown}.")


def _lines(
    rows: Sequence[dict[str, Any]], needed: Sequence[str], path: str | None, split: str
) -> Iterable[str]:
    """Rows as lines of JSON; `path` is the column of files, which are from the current folder."""
    for number, row in enumerate(rows, start=1):
        plain = {name: row[name] for name in needed} or row
        try:
            if path is not None:
                plain[path] = os.path.abspath(os.fspath(row[path]))
            yield json.dumps(plain, default=_plain) + "\n"
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"Row {number} of '{split}' has something that is no text, number or list: {error}."
            ) from error


def _plain(value: Any) -> Any:
    """What JSON has no word for: arrays as lists, paths and dates as texts."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike | date):
        return str(value)
    raise TypeError(f"a {type(value).__name__}")
