"""Tasks on text files: masked and causal language modelling, translation, and other pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks.conversations import MESSAGES, conversation, written
from headcount.tasks.files import JSON, column_names, listing, read_lines
from headcount.tasks.own import (
    STEMS,
    evaluated,
    find_splits,
    origin,
    read_splits,
    test_as_dev,
)
from headcount.tasks.parts import apart
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

SUFFIXES = (".txt", ".text", ".md", "")


def masked_lm(source: Source) -> Task:
    """Every line that is not blank is one example."""
    return text_task("masked-lm", source, ("recall@1", "perplexity"), packed=False)


def causal_lm(source: Source) -> Task:
    """The text is cut into windows; without a window, its lines are joined and cut into blocks."""
    metrics = ("perplexity",) if source.window is None else ("perplexity", "bits_per_byte")
    return text_task("causal-lm", source, metrics, packed=True)


def text_task(kind: str, source: Source, metrics: tuple[str, ...], *, packed: bool) -> Task:
    """A task on the lines of text files, or on a column of tables; a single file is split.

    JSON lines without a column named have conversations; of those, no two are packed.
    """
    if len(source.columns) > 1:
        raise UsageError(f"Task '{kind}' has texts of one column: pass --columns COLUMN.")
    files = {} if source.columns else find_splits(source, (*SUFFIXES, *JSON))
    column = next(iter(source.columns), "")
    if rows := [path for path in files.values() if path.suffix.lower() in JSON]:
        column = MESSAGES
        _require_messages(rows, kind, packed)
    causal = packed
    tables = read_splits(source, [column], kind, nested=causal) if column else {}
    files = {split: path for split, (path, _) in tables.items()} or files
    if not files:
        raise UsageError(
            f"Task '{kind}' needs a text file: pass --data FILE, or --train and --dev."
        )
    chat = any(not isinstance(row, str) for _, table in tables.values() for row in table[column])
    packed = packed and not chat

    def read(split: str) -> Examples:
        if chat:
            rows = enumerate(tables[split][1][column], start=1)
            talks = [conversation(row, f"Row {n} of '{files[split]}'") for n, row in rows]
            return Examples((list(map(written, talks)),))
        lines = tables[split][1][column] if tables else read_lines(files[split])
        if not any(line.strip() for line in lines):
            raise NotFoundError(f"'{files[split]}' has no text.")
        if not packed or source.window is None:
            lines = [line for line in lines if line.strip()]
        return Examples((lines,))

    splits, parts, load = tuple(files), None, read
    if len(files) == 1:
        (only,) = files
        divided, parts = apart({only: read(only)}, origin(source), packed=packed)
        splits, load = tuple(divided), divided.__getitem__
    return Task(
        name=kind,
        kind=kind,
        texts=("text",),
        metrics=metrics,
        loader=load,
        splits=splits,
        evaluation=evaluated(splits),
        parts=parts,
        notes=test_as_dev(files, source),
        packed=packed,
        chat=chat,
        window=source.window if causal else None,
        stride=source.stride if causal and source.window is not None else None,
    )


def _require_messages(paths: Sequence[Path], kind: str, chat: bool) -> None:
    """Refuse JSON lines that are no conversations, or that the task does not read as such."""
    for path in paths:
        if not chat or MESSAGES not in (column_names(path) or (MESSAGES,)):
            what = " or conversations in 'messages'" if chat else ""
            raise UsageError(
                f"'{path}' is a table, and task '{kind}' has texts{what}: pass --columns COLUMN."
            )


Loaders = dict[str, Callable[[], Examples]]


def translation(source: Source) -> Task:
    """`train.en` beside `train.de`, or two `columns` of a table; scored by sacrebleu."""
    splits, notes = _from_table(source, "translation") if source.columns else _from_parallel(source)
    return _written("translation", source, splits, notes, ("bleu",))


def text_to_text(source: Source) -> Task:
    """Two `columns` of a table: what is read, and what is written."""
    if source.languages is not None:
        raise UsageError(
            "Task 'text-to-text' reads the columns of a table: pass --columns SOURCE TARGET, or "
            "--task translation for parallel files."
        )
    splits, notes = _from_table(source, "text-to-text")
    for split, load in splits.items():
        for number, texts in enumerate(zip(*load().texts, strict=True), start=1):
            for column, text in zip(source.columns, texts, strict=True):
                if not (text or "").strip():
                    raise UsageError(f"Row {number} of {split} has no text in '{column}'.")
    return _written("text-to-text", source, splits, notes, ("rouge_l", "chrf"))


def _written(
    name: str, source: Source, splits: Loaders, notes: tuple[str, ...], metrics: tuple[str, ...]
) -> Task:
    """A task of writing one text from another."""
    names, load, parts = tuple(splits), lambda split: splits[split](), None
    if len(splits) == 1:
        divided, parts = apart({name: load(name) for name in names}, origin(source))
        names, load = tuple(divided), divided.__getitem__
    return Task(
        name=name,
        kind=name,
        texts=source.columns or source.languages or ("source", "target"),
        metrics=metrics,
        loader=load,
        splits=names,
        evaluation=evaluated(names),
        parts=parts,
        notes=notes,
    )


def _from_table(source: Source, name: str) -> tuple[Loaders, tuple[str, ...]]:
    if len(source.columns) != 2:
        raise UsageError(f"Task '{name}' has two text columns: pass --columns SOURCE TARGET.")
    tables = read_splits(source, list(source.columns), name)
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
    files: dict[str, tuple[Path, Path]] = {}
    for split, names in stems.items():
        for stem in names:
            pair = folder / f"{stem}.{first}", folder / f"{stem}.{second}"
            if pair[0].is_file() and pair[1].is_file():
                files.setdefault(split, pair)
    if len(files) > 1 and len(set(files.values())) == 1:
        files.pop("test")  # the one pair of files there is, under another name
    if not files:
        raise NotFoundError(
            f"No parallel files like train.{first} and train.{second} in '{folder}'; "
            f"found {listing(folder)}."
        )
    notes = test_as_dev({split: pair[0] for split, pair in files.items()}, source)
    return {split: lambda pair=pair: _parallel(*pair) for split, pair in files.items()}, notes


def _parallel(first: Path, second: Path) -> Examples:
    texts = read_lines(first), read_lines(second)
    if len(texts[0]) != len(texts[1]):
        raise UsageError(
            f"'{first}' has {len(texts[0])} lines and '{second}' has {len(texts[1])}; "
            "parallel files have one sentence a line, in the same order."
        )
    return Examples(texts)
