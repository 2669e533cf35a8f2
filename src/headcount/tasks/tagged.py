"""Sentences with a tag for every word: CoNLL's columns, or JSON lines with `tokens` and `tags`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import parse_json
from headcount.tasks.entities import OUTSIDE, is_entity
from headcount.tasks.files import read_lines
from headcount.tasks.own import evaluated, find_splits, origin, test_as_dev
from headcount.tasks.parts import apart
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

JSON = (".jsonl", ".json")
SUFFIXES = (".conll", ".txt", ".tsv", ".bio", ".iob", ".iob2", *JSON)
DOCUMENT = "-DOCSTART-"
Sentence = tuple[list[str], list[str]]
"""Words, and a tag for each."""


def token_classification(source: Source) -> Task:
    """Tags are all those of all splits: O first, then by name."""
    files = find_splits(source, SUFFIXES)
    if not files:
        raise UsageError(
            "Task 'token-classification' needs sentences with a tag for every word, in CoNLL's "
            "columns or as JSON lines: pass --data DIR or FILE, or --train and --dev."
        )
    sentences = {split: read_tagged(path, source.columns) for split, path in files.items()}
    tags = {tag for rows in sentences.values() for _, names in rows for tag in names}
    labels = tuple(sorted(tags, key=lambda tag: (tag != OUTSIDE, tag)))
    rows = {
        split: Examples(tuple([" ".join(row[side]) for row in read] for side in (0, 1)))
        for split, read in sentences.items()
    }
    splits, parts = apart(rows, origin(source))
    entity = ("entity_f1",) if any(map(is_entity, labels)) else ()
    return Task(
        name="token-classification",
        kind="token-classification",
        texts=("words", "tags"),
        labels=labels,
        numbered=False,
        called=source.called(labels),
        metrics=(*entity, "token_accuracy"),
        loader=splits.__getitem__,
        splits=tuple(splits),
        evaluation=evaluated(splits),
        parts=parts,
        notes=test_as_dev(files, source),
    )


def read_tagged(path: Path, columns: tuple[str, ...] = ()) -> list[Sentence]:
    """The sentences of a file; `columns` are those of JSON lines, else `tokens` and `tags`."""
    json_lines = path.suffix.lower() in JSON
    names = columns or ("tokens", "tags")
    if json_lines and len(names) != 2:
        raise UsageError("JSON lines have words and tags: pass --columns WORDS TAGS.")
    sentences = list(_json_sentences(path, *names) if json_lines else _conll_sentences(path))
    if not sentences:
        raise NotFoundError(f"'{path}' has no sentence.")
    return sentences


def _conll_sentences(path: Path) -> Iterator[Sentence]:
    """A word is the first column of a line, its tag the last."""
    words: list[str] = []
    tags: list[str] = []
    width = 0
    for number, line in enumerate([*read_lines(path), ""], start=1):
        if not line.strip() or line.startswith(DOCUMENT):
            if words:
                yield words, tags
            words, tags = [], []
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        width = width or len(cells)
        if len(cells) < 2 or len(cells) != width:
            raise UsageError(
                f"'{path}' line {number} has {len(cells)} columns, and a line is a word, "
                f"{'its tag' if width < 3 else f'{width - 2} more columns, its tag'} at the end."
            )
        _require_plain(cells[0], cells[-1], f"'{path}' line {number}")
        words.append(cells[0])
        tags.append(cells[-1])


def _json_sentences(path: Path, word_column: str, tag_column: str) -> Iterator[Sentence]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        where = f"'{path}' line {number}"
        row = parse_json(line, f"{where} is not JSON")
        if not isinstance(row, dict) or not {word_column, tag_column} <= set(row):
            raise UsageError(f"{where} is no JSON object with '{word_column}' and '{tag_column}'.")
        words, tags = row[word_column], row[tag_column]
        for name, column in ((word_column, words), (tag_column, tags)):
            if not isinstance(column, list) or not all(isinstance(item, str) for item in column):
                raise UsageError(f"{where}: '{name}' is a list of texts, one for every word.")
        if len(words) != len(tags) or not words:
            raise UsageError(f"{where} has {len(words)} words and {len(tags)} tags.")
        for word, tag in zip(words, tags, strict=True):
            _require_plain(word, tag, where)
        yield words, tags


def _require_plain(word: str, tag: str, where: str) -> None:
    for text, name in ((word, "word"), (tag, "tag")):
        if not text.strip() or " " in text:
            raise UsageError(f"{where} has the {name} {text!r:.40}: it is empty or has a space.")
