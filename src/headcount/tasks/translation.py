"""Translation from parallel text files (one sentence a line) or a table with two text columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headcount.errors import NotFoundError, UsageError
from headcount.tasks.files import listing, read_lines
from headcount.tasks.own import STEMS, read_splits
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task


def translation(source: Source) -> Task:
    """`train.en` beside `train.de`, or columns named by `text`; scored by sacrebleu."""
    splits = _from_table(source) if source.text else _from_parallel(source)
    return Task(
        name="translation",
        kind="translation",
        texts=source.text or source.languages or ("source", "target"),
        metrics=("bleu",),
        loader=lambda split: splits[split](),
        splits=tuple(splits),
        evaluation="dev" if "dev" in splits else next(iter(splits)),
    )


def _from_table(source: Source) -> dict[str, Callable[[], Examples]]:
    if len(source.text) != 2:
        raise UsageError("A translation has two text columns: pass --text twice, source first.")
    tables = read_splits(source, list(source.text), "translation")
    rows = {
        split: Examples(tuple(table[column] for column in source.text))
        for split, (_, table) in tables.items()
    }
    return {split: lambda examples=examples: examples for split, examples in rows.items()}


def _from_parallel(source: Source) -> dict[str, Callable[[], Examples]]:
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
    if not found:
        raise NotFoundError(
            f"No parallel files like train.{first} and train.{second} in '{folder}'; "
            f"found {listing(folder)}."
        )
    return {split: lambda pair=pair: _parallel(*pair) for split, pair in found.items()}


def _parallel(first: Path, second: Path) -> Examples:
    texts = read_lines(first), read_lines(second)
    if len(texts[0]) != len(texts[1]):
        raise UsageError(
            f"'{first}' has {len(texts[0])} lines and '{second}' has {len(texts[1])}; "
            "parallel files have one sentence a line, in the same order."
        )
    return Examples(texts)
