"""The pocket tasks, and their examples by name, split and index.

An example is a function of (task, split, seed, index): nothing is stored, any slice can be made
alone. A sentence belongs to one split only, whatever the task, seed or label: the numbers of its
content words are added up, and the rest by four says train (0, 1), dev (2) or test (3). Number,
order and negation do not count, so a sentence and its twisted twin are never on two sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from headcount.base.digest import digest
from headcount.base.errors import UsageError
from headcount.base.names import require
from headcount.tasks.pocket import (
    acceptability,
    corpus,
    entailment,
    pairs,
    sentiment,
    translation,
)
from headcount.tasks.pocket.grammar import PocketRow
from headcount.tasks.pocket.lexicon import LEMMAS

SPLITS: Final = ("train", "dev", "test")
_SPLIT_OF_REST: Final = ("train", "train", "dev", "test")


@dataclass(frozen=True, kw_only=True)
class PocketTask:
    """What a pocket task is and how it is scored."""

    name: str
    kind: str
    metric: str  # matthews, accuracy, f1, spearman, recall or bleu
    labels: tuple[str, ...]  # names of the classes, in order; empty when there are none
    fields: tuple[str, ...]  # where the texts are in an example
    summary: str
    make: Callable[[Random], PocketRow]


_ONE, _TWO = ("text",), ("text", "text_b")

POCKET_TASKS: Final[dict[str, PocketTask]] = {
    task.name: task
    for task in (
        PocketTask(
            name="pocket-acceptability",
            kind="classification",
            metric="matthews",
            labels=acceptability.LABELS,
            fields=_ONE,
            summary="is this a sentence of the language?",
            make=acceptability.example,
        ),
        PocketTask(
            name="pocket-sentiment",
            kind="classification",
            metric="accuracy",
            labels=sentiment.LABELS,
            fields=_ONE,
            summary="opinions with negation and contrast",
            make=sentiment.example,
        ),
        PocketTask(
            name="pocket-paraphrase",
            kind="classification",
            metric="f1",
            labels=pairs.LABELS,
            fields=_TWO,
            summary="the same event said twice, or its roles mixed up",
            make=pairs.paraphrase,
        ),
        PocketTask(
            name="pocket-similarity",
            kind="regression",
            metric="spearman",
            labels=(),
            fields=_TWO,
            summary="how many roles two events share, 0 to 5",
            make=pairs.similarity,
        ),
        PocketTask(
            name="pocket-entailment",
            kind="classification",
            metric="accuracy",
            labels=entailment.LABELS,
            fields=_TWO,
            summary="does a claim follow from a scene, in three classes",
            make=entailment.example,
        ),
        PocketTask(
            name="pocket-corpus",
            kind="masked-lm",
            metric="recall",
            labels=(),
            fields=_TWO,
            summary="sentences, and pairs that belong together (text_b may be None)",
            make=corpus.example,
        ),
        PocketTask(
            name="pocket-translation",
            kind="translation",
            metric="bleu",
            labels=(),
            fields=("source", "target"),
            summary="into an invented verb-final language with agreement",
            make=translation.example,
        ),
    )
}


def split_of(text: str) -> str:
    """The one split a sentence may appear in.

    >>> split_of("the dogs chase the cat .") == split_of("the dog is chased by these cats .")
    True
    """
    return _SPLIT_OF_REST[sum(LEMMAS.get(word, 0) for word in text.split()) % 4]


def examples(
    task: str, split: str, count: int, seed: int = 0, *, start: int = 0
) -> list[PocketRow]:
    """Examples `start` to `start + count` of a task's split, the same ones every time.

    Keys: `text` and `label`; `text`, `text_b` and `label` for pairs; `text`, `text_b` and
    `together` (both None for a single sentence) for the corpus; `source` and `target` for
    translation.
    """
    require("pocket task", task, POCKET_TASKS)
    require("split", split, SPLITS)
    if count < 0 or start < 0:
        raise UsageError(f"count and start must not be negative, got {count} and {start}.")
    make = POCKET_TASKS[task].make
    key = POCKET_TASKS[task].fields[0]
    # One hash for the whole call; the index is added, and Random mixes the sum thoroughly.
    base = int(digest(f"{task}/{split}/{seed}", size=16), 16)
    rng = Random()
    rows: list[PocketRow] = []
    for index in range(start, start + count):
        rng.seed(base + index)
        example = make(rng)
        while split_of(str(example[key])) != split:
            example = make(rng)
        rows.append(example)
    return rows
