"""Prompts with choices, one of which is right: JSON lines, or the columns of a table.

{"prompt": "The sun", "choices": ["shines.", "rains.", "sings."], "answer": 0}

PIQA's own files are read with `--data FOLDER --columns goal sol1 sol2`: the answers of valid.jsonl
are in valid-labels.lst beside it, one a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import parse_json
from headcount.base.text import short
from headcount.tasks.files import JSON, Table, read_lines, read_table
from headcount.tasks.own import evaluated, find_splits, origin, read_splits, test_as_dev
from headcount.tasks.parts import apart
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

Row = tuple[str, list[str], object]
"""Prompt, choices, and the number of the right one, from 0; None where another file has it."""


def multiple_choice(source: Source) -> Task:
    """The texts of a row are its prompt, in the template, and its choices as JSON."""
    if len(source.columns) == 1:
        raise UsageError(
            "A row has a prompt and choices: pass --columns PROMPT CHOICES (a list), or "
            "--columns PROMPT FIRST SECOND …."
        )
    files: dict[str, Path] = {}
    if source.hub is not None:
        columns, label = _table_columns(source), source.label or "answer"
        tables = read_splits(source, [*columns, label], "multiple-choice")
        read = {
            split: list(_table_rows(table, columns, label)) for split, (_, table) in tables.items()
        }
        names = {split: path for split, (path, _) in tables.items()}
    else:
        files = names = find_splits(source)
        if not files:
            raise UsageError(
                "Task 'multiple-choice' needs prompts with choices: pass --data DIR or FILE, or "
                "--train and --dev."
            )
        read = {split: read_choices(path, source) for split, path in files.items()}
    template = (source.template or "{}").replace("\\n", "\n")
    rows = {split: _examples(read[split], template, names[split]) for split in read}
    splits, parts = apart(rows, origin(source))
    return Task(
        name="multiple-choice",
        kind="multiple-choice",
        texts=("prompt", "choices"),
        metrics=("acc", "acc_norm"),
        loader=splits.__getitem__,
        splits=tuple(splits),
        evaluation=evaluated(splits),
        parts=parts,
        notes=test_as_dev(files, source),
        choices=True,
    )


def read_choices(path: Path, source: Source) -> list[Row]:
    """The rows of a file; answers that are not in it are in NAME-labels.lst of its folder."""
    label, beside = source.label or "answer", path.with_name(f"{path.stem}-labels.lst")
    folder = source.data is not None and source.data.is_dir()  # then the study knows that file, too
    separate = source.label is None and folder and beside.is_file()
    if path.suffix.lower() in JSON:
        rows = list(_json_rows(path, source.columns or ("prompt", "choices"), label, separate))
    else:
        columns = _table_columns(source)
        table = read_table(path, columns if separate else [*columns, label])
        rows = list(_table_rows(table, columns, None if separate else label))
    if not rows:
        raise NotFoundError(f"'{path}' has no rows.")
    if not separate:
        return rows
    answers = [line.strip() for line in read_lines(beside)]
    if len(answers) != len(rows):
        raise UsageError(
            f"'{beside}' has {len(answers)} answers, and '{path.name}' has {len(rows)} rows: the "
            "answers are one a line, in the order of the rows."
        )
    return [
        (prompt, choices, answer)
        for (prompt, choices, _), answer in zip(rows, answers, strict=True)
    ]


def _table_columns(source: Source) -> tuple[str, ...]:
    if len(source.columns) < 3:
        raise UsageError(
            "The choices of a table are columns of their own: pass --columns PROMPT FIRST SECOND "
            "…; a list of choices is read from JSON lines."
        )
    return source.columns


def _table_rows(table: Table, columns: tuple[str, ...], label: str | None) -> Iterator[Row]:
    for number, prompt in enumerate(table[columns[0]]):
        choices = [table[column][number] for column in columns[1:]]
        yield prompt, choices, None if label is None else table[label][number]


def _json_rows(path: Path, columns: tuple[str, ...], label: str, separate: bool) -> Iterator[Row]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        where = f"'{path}' line {number}"
        row = parse_json(line, f"{where} is not JSON")
        if not isinstance(row, dict):
            raise UsageError(f"{where} is not a JSON object.")
        if missing := [name for name in columns if name not in row]:
            raise UsageError(
                f"{where} has no {', '.join(missing)}; it has {short(', '.join(row))}: --columns "
                "names the prompt and the choices."
            )
        if not separate and label not in row:
            raise UsageError(
                f"{where} has no {label}: --label names the answer, and answers in a file of their "
                "own (NAME-labels.lst beside NAME.jsonl) are read with --data FOLDER."
            )
        texts = [row[name] for name in columns[1:]]
        if len(columns) == 2:
            if not isinstance(texts[0], list):
                raise UsageError(f"{where}: '{columns[1]}' is a list of choices.")
            texts = texts[0]
        if not all(isinstance(text, str) for text in (row[columns[0]], *texts)):
            raise UsageError(f"{where}: a prompt and its choices are texts.")
        yield row[columns[0]], texts, None if separate else row[label]


def _examples(rows: list[Row], template: str, path: Path) -> Examples:
    """Refuse what cannot be scored: no prompt, fewer than two choices, an answer that is none."""
    prompts, lists, answers = [], [], []
    for number, (prompt, choices, answer) in enumerate(rows, start=1):
        where = f"Row {number} of '{path}'"
        if not prompt.strip():
            raise UsageError(
                f"{where} has an empty prompt: choices are scored as what follows one."
            )
        if len(choices) < 2:
            raise UsageError(f"{where} has {len(choices)} choices: there is nothing to choose.")
        if not all(choice.strip() for choice in choices):
            raise UsageError(f"{where} has an empty choice, which has no likelihood.")
        right = _number(answer)
        if right is None or not 0 <= right < len(choices):
            raise UsageError(
                f"{where} has the answer {short(answer)}, and its choices are numbered from 0 to "
                f"{len(choices) - 1}."
            )
        prompts.append(template.replace("{}", prompt))
        lists.append(json.dumps(choices))
        answers.append(right)
    return Examples((prompts, lists), np.array(answers, dtype=np.int64))


def _number(answer: object) -> int | None:
    """A whole number, written as one or as a text."""
    if isinstance(answer, int) and not isinstance(answer, bool):
        return answer
    if isinstance(answer, str) and answer.isascii() and answer.isdecimal() and len(answer) < 10:
        return int(answer)
    return None
