"""Retrieval in BEIR's layout: corpus.jsonl, queries.jsonl, and qrels/dev.tsv with the judgments."""

from __future__ import annotations

import json
from pathlib import Path

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import parse_json
from headcount.base.text import short
from headcount.tasks.files import listing, pick, read_lines, read_table
from headcount.tasks.own import STEMS, evaluated, test_as_dev
from headcount.tasks.parts import apart
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

KEYS = ("_id", "text")
LARGEST = 10_000
"""The grade of a judgment; sets in use have 1 to 4."""
QRELS = ("query-id", "corpus-id", "score")


def retrieval(source: Source) -> Task:
    """Queries with the texts that answer them; the queries of a single file are split."""
    folder = source.folder()
    judgments = folder / "qrels"
    if not judgments.is_dir():
        raise NotFoundError(
            f"No folder qrels in '{folder}', which has judgments in BEIR's layout; found "
            f"{listing(folder)}."
        )
    files = {
        split: path
        for split, stems in STEMS.items()
        if (path := pick(judgments, stems, (".tsv",))) is not None
    }
    if not files:
        raise NotFoundError(
            f"No dev.tsv, test.tsv or train.tsv in '{judgments}'; found {listing(judgments)}."
        )
    corpus, queries = _texts(folder / "corpus.jsonl"), _texts(folder / "queries.jsonl")
    splits, parts = apart(
        {split: _judged(path, queries, corpus) for split, path in files.items()}, "queries.jsonl"
    )
    return Task(
        name="retrieval",
        kind="retrieval",
        texts=("query", "judgments"),
        metrics=("ndcg@10", "recall@10"),
        loader=splits.__getitem__,
        splits=tuple(splits),
        evaluation=evaluated(splits),
        parts=parts,
        notes=test_as_dev(files, source),
    )


def _texts(path: Path) -> dict[str, str]:
    """Texts by their names, behind their titles where they have any."""
    texts: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        row = parse_json(line, f"'{path}' line {number} is not JSON")
        if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in KEYS):
            raise UsageError(f"'{path}' line {number} is no object with the texts _id and text.")
        if row["_id"] in texts:
            raise UsageError(f"'{path}' has the _id {short(row['_id'])} twice.")
        texts[row["_id"]] = f"{row.get('title') or ''} {row['text']}".strip()
    if not texts:
        raise NotFoundError(f"'{path}' has no rows.")
    return texts


def _judged(path: Path, queries: dict[str, str], corpus: dict[str, str]) -> Examples:
    """Queries with their judgments, by the place of a text in the corpus.

    A judged text that is not in the corpus stays one that no model can retrieve, and one of the
    query's own name is no answer, both as in BEIR.
    """
    table = read_table(path, QRELS)
    places = {name: number for number, name in enumerate(corpus)}
    judged: dict[str, dict[int, int | None]] = {}
    for query, text, grade in zip(*(table[column] for column in QRELS), strict=True):
        if query not in queries:
            raise UsageError(f"'{path}' has the query {short(query)}, which queries.jsonl has not.")
        try:
            value = int(grade)
            if abs(value) > LARGEST:
                raise ValueError
        except ValueError as error:
            raise UsageError(
                f"'{path}' has the score {short(grade)}, and a judgment is a whole number up to "
                f"{LARGEST:,}."
            ) from error
        grades = judged.setdefault(query, {})
        grades[places.setdefault(text, len(places))] = value
    for query, grades in judged.items():
        if query in corpus:
            grades[places[query]] = None
    texts = [queries[query] for query in judged], [json.dumps(grades) for grades in judged.values()]
    return Examples(texts, corpus=tuple(corpus.values()))
