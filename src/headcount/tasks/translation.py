"""Translation from parallel text files (one sentence a line) or a table with two text columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks.files import listing, read_lines
from headcount.tasks.own import STEMS, evaluated, origin, read_splits, test_as_dev
from headcount.tasks.parts import apart
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

Loaders = dict[str, Callable[[], Examples]]


def translation(source: Source) -> Task:
    """`train.en` beside `train.de`, or two `columns` of a table; scored by sacrebleu."""
    splits, notes = _from_table(source) if source.columns else _from_parallel(source)
    names, load, parts = tuple(splits), lambda split: splits[split](), None
    if len(splits) == 1:
        divided, parts = apart({name: load(name) for name in names}, origin(source))
        names, load = tuple(divided), divided.__getitem__
    return Task(
        name="translation",
        kind="translation",
        texts=source.columns or source.languages or ("source", "target"),
        metrics=("bleu",),
        loader=load,
        splits=names,
        evaluation=evaluated(names),
        parts=parts,
        notes=notes,
    )


def _from_table(source: Source) -> tuple[Loaders, tuple[str, ...]]:
    if len(source.columns) != 2:
        raise UsageError("A translation has two text columns: pass --columns SOURCE TARGET.")
    tables = read_splits(source, list(source.columns), "translation")
    rows = {
        split: Examples(tuple(table[column] for column in source.columns))
        for split, (_, table) in tables.items()
    }
    notes = test_as_dev({split: path for split, (path, _) in tables.items()}, source)
    return {split: lambda examples=examples: examples for split, examples in rows.items()}, notes


def _from_parallel(source: Source) -> tuple[Loaders, tuple[str, ...]]:
    if source.languages is None:
        raise UsageError(
            "Task 'translation' needs the endings of its two files: pass --languages en de "
            "(files train.en, train.de, dev.en, dev.de)."
        )
    folder = source.folder()
    first, second = source.languages
    stems = {**STEMS, "test": tuple(sorted({p.stem for p in folder.glob(f"test*.{first}")}))}
    found: dict[str, tuple[Path, Path]] = {}
    for split, names in stems.items():
        for stem in names:
            pair = folder / f"{stem}.{first}", folder / f"{stem}.{second}"
            if pair[0].is_file() and pair[1].is_file():
                found.setdefault(split, pair)
    if len(found) > 1 and len(set(found.values())) == 1:
        found.pop("test")  # the one pair of files there is, under another name
    if not found:
        raise NotFoundError(
            f"No parallel files like train.{first} and train.{second} in '{folder}'; "
            f"found {listing(folder)}."
        )
    notes = test_as_dev({split: pair[0] for split, pair in found.items()}, source)
    return {split: lambda pair=pair: _parallel(*pair) for split, pair in found.items()}, notes


def _parallel(first: Path, second: Path) -> Examples:
    texts = read_lines(first), read_lines(second)
    if len(texts[0]) != len(texts[1]):
        raise UsageError(
            f"'{first}' has {len(texts[0])} lines and '{second}' has {len(texts[1])}; "
            "parallel files have one sentence a line, in the same order."
        )
    return Examples(texts)
