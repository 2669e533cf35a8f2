"""Extractive question answering: SQuAD's files, and how its evaluation script counts answers.

The script is evaluate-v2.0, which reads both versions: answers in lower case, without articles and
punctuation, beside every gold answer; the best one counts. No answer is an empty one, and is right
or wrong as a whole.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import read_json
from headcount.tasks.own import evaluated, find_splits, origin, test_as_dev
from headcount.tasks.parts import apart
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

SUFFIXES = (".json", "-v1.1.json", "-v2.0.json")
LARGEST = 2**30
"""Bytes of a file; SQuAD's largest has 42 million."""
PUNCTUATION = str.maketrans("", "", string.punctuation)
Answer = tuple[str, int]
"""A text, and where it begins in the context."""


def question_answering(source: Source) -> Task:
    """Questions of `train.json` and `dev.json`, each with its context and its answers."""
    files = find_splits(source, SUFFIXES)
    if not files or source.columns:
        raise UsageError(
            "Task 'question-answering' reads SQuAD's JSON, whose fields have names of their own: "
            "pass --data DIR or FILE, or --train and --dev, and no --columns."
        )
    rows = {split: read_squad(path) for split, path in files.items()}
    splits, parts = apart(rows, origin(source))
    return Task(
        name="question-answering",
        kind="question-answering",
        texts=("question", "context", "answers"),
        metrics=("answer_f1", "exact_match"),
        loader=splits.__getitem__,
        splits=tuple(splits),
        evaluation=evaluated(splits),
        parts=parts,
        notes=test_as_dev(files, source),
        stride=source.stride,
    )


def read_squad(path: Path) -> Examples:
    """Questions, contexts, and answers as JSON; questions on one context stay together."""
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    for context, question, where in _questions(path):
        text = _text(question, "question", where)
        none = question.get("is_impossible")
        answers = list(_answers(question, context, where))
        if not answers and none is not True:
            raise UsageError(f"{where} has no answers, and does not say that is_impossible.")
        columns[0].append(text)
        columns[1].append(context)
        columns[2].append(write_answers([] if none is True else answers, none is not None))
    if not columns[0]:
        raise NotFoundError(f"'{path}' has no question.")
    return Examples(columns, groups=columns[1])


def write_answers(answers: Sequence[Answer], may_have_none: bool) -> str:
    """The answers of a question as a text; whether a question of its file may have none."""
    return json.dumps([list(answers), may_have_none])


def read_answers(text: str) -> tuple[list[Answer], bool]:
    """What `write_answers` wrote."""
    answers, may_have_none = json.loads(text)
    return [(answer, start) for answer, start in answers], may_have_none


def answer_scores(prediction: str, answers: Sequence[str]) -> tuple[float, float]:
    """F1 of words and exact match, each with the answer that is best for it.

    >>> answer_scores("the cat", ["Cat!", "a black cat"])
    (1.0, 1.0)
    >>> answer_scores("", [])
    (1.0, 1.0)
    """
    predicted = normalized(prediction)
    golds = [gold for gold in map(normalized, answers) if gold] or [""]
    return max(_f1(predicted, gold) for gold in golds), float(predicted in golds)


def normalized(text: str) -> str:
    """Lower case, without punctuation and articles, one space between two words."""
    plain = text.lower().translate(PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


def _f1(predicted: str, gold: str) -> float:
    words, wanted = predicted.split(), gold.split()
    if not words or not wanted:
        return float(words == wanted)
    common = (Counter(words) & Counter(wanted)).total()
    return 2 * common / (len(words) + len(wanted))


def _questions(path: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    """(context, question, where it is) of every question of a file."""
    data = read_json(path, "file of SQuAD", LARGEST)
    for number, article in enumerate(_list(data, "data", f"'{path}'"), start=1):
        where = f"'{path}' article {number}"
        for at, paragraph in enumerate(_list(article, "paragraphs", where), start=1):
            spot = f"{where}, paragraph {at},"
            context = _text(paragraph, "context", spot)
            if not context.strip():
                raise UsageError(f"{spot} has an empty context.")
            for question in _list(paragraph, "qas", spot):
                name = question.get("id", question.get("question")) if _is_object(question) else ""
                yield context, question, f"{spot} question {name!r:.40}"


def _answers(question: dict[str, Any], context: str, where: str) -> Iterator[Answer]:
    for answer in _list(question, "answers", where) if "answers" in question else []:
        text = _text(answer, "text", where)
        start = answer.get("answer_start")
        if not text.strip():
            raise UsageError(f"{where} has an answer without text.")
        if type(start) is not int or start < 0 or context[start : start + len(text)] != text:
            part = repr(context[start : start + len(text)]) if type(start) is int else "nothing"
            raise UsageError(
                f"{where} has the answer {text!r:.60} at answer_start {start!r:.20}, where its "
                f"context has {part:.60}."
            )
        yield text, start


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _list(value: object, name: str, where: str) -> list[Any]:
    """A list of a JSON object by its name; anything else is refused."""
    items = value.get(name) if isinstance(value, dict) else None
    if not isinstance(items, list):
        raise UsageError(f"{where} has no list '{name}', as SQuAD's JSON has.")
    return items


def _text(value: object, name: str, where: str) -> str:
    text = value.get(name) if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise UsageError(f"{where} has no text '{name}', as SQuAD's JSON has.")
    return text
