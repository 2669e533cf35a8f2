"""Speech with its texts: tables of WAV files and what is said in them.

Rows are known by the content of their files, so that a folder can be moved, and a sound that is in
two splits is seen.
"""

from __future__ import annotations

from pathlib import Path

from headcount.base.errors import UsageError
from headcount.base.names import require
from headcount.tasks.files import read_table
from headcount.tasks.media import digests, files_of
from headcount.tasks.own import evaluated, find_splits, origin, test_as_dev
from headcount.tasks.parts import apart
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task
from headcount.tasks.transcripts import NORMALIZERS


def speech_recognition(source: Source) -> Task:
    """Paths, from the table's folder, and texts: the columns `audio` and `text` if not named."""
    if len(source.columns) > 1:
        raise UsageError("Task 'speech-recognition' has one column of files: --columns PATH.")
    tables = find_splits(source)
    if not tables:
        raise UsageError(
            "Task 'speech-recognition' needs tables of WAV files and their texts: pass --data DIR "
            "or FILE, or --train and --dev, and --columns and --label if the columns are not "
            "called audio and text."
        )
    columns = (source.columns[0] if source.columns else "audio", source.label or "text")
    normalizer = require("normalizer", source.normalizer or "plain", NORMALIZERS)
    rows = {split: _read(path, *columns, normalizer) for split, path in tables.items()}
    splits, parts = apart(rows, origin(source))
    return Task(
        name="speech-recognition",
        kind="speech-recognition",
        texts=columns,
        metrics=("wer", "cer"),
        normalizer=normalizer,
        loader=splits.__getitem__,
        splits=tuple(splits),
        evaluation=evaluated(splits),
        parts=parts,
        notes=test_as_dev(tables, source),
    )


def _read(path: Path, audio: str, text: str, normalizer: str) -> Examples:
    table = read_table(path, [audio, text])
    files = files_of(path, table[audio])
    for row, words in enumerate(table[text], start=1):
        if not NORMALIZERS[normalizer](words):
            raise UsageError(f"'{path}' row {row}: the text {words!r:.40} has no word.")
    return Examples((digests(files), table[text]), None, files)
