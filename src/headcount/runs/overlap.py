"""Rows that are in two sets at once, by their texts: what was seen before says little of the rest.

    shared_note({"training": keys_of(task.load("train"))}, keys_of(task.load("dev")), "held-out")

Names of splits tell nothing of it: a train and a dev file may hold the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount.base.files import expanded
from headcount.models.find import unwrap
from headcount.models.probe import reads_text
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import seen_rows
from headcount.runs.subject import Subject, drawn
from headcount.tasks.conversations import (
    calibration_texts,
    conversation,
    is_conversation,
    written,
)
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.inputs import media_files
from headcount.tasks.media import digests
from headcount.tasks.parts import read_half
from headcount.tasks.task import Examples, Task
from headcount.training.scoring import Scoring

Keys = list[tuple[Any, ...]]
"""What a row is known by: its texts without differences in white space, or its tokens."""


def keys_of(examples: Examples) -> Keys:
    """Every row's texts; a row that says nothing has none."""
    rows = zip(*examples.texts, strict=True)
    return [tuple(" ".join(str(text or "").split()) for text in row) for row in rows]


def shared_note(seen: Mapping[str, Keys], scored: Keys, name: str) -> str | None:
    """How many of the rows that are scored were seen before, and as what.

    >>> shared_note({"calibration": [("a",), ("b",)]}, [("a",), ("c",)], "held-out")[:50]
    '1 of 2 held-out rows are also calibration rows: th'
    """
    parts = []
    for use, keys in seen.items():
        known = set(keys)
        count = sum(any(key) and key in known for key in scored)
        if count:
            parts.append(f"{count:,} of {len(scored):,} {name} rows are also {use} rows")
    if not parts:
        return None
    return (
        f"{', '.join(parts)}: their scores say little of other rows. Take the rows they share out "
        "of one of the two."
    )


def shared_rows(
    subject: Subject, options: Prune, used: Mapping[str, Mapping[str, object]], seed: int
) -> str | None:
    """How many rows that are scored are also rows of calibration, repair or training.

    None where there are none, and where a whole split is both: `seen_rows` says that.
    """
    scoring, task = options.scoring, subject.need_task()
    split = scoring.split or task.evaluation
    if seen_rows({**used, "evaluation": {"split": split}}) is not None:
        return None
    seen, scored = used_keys(task, used), scored_keys(subject, scoring)
    if any(rows["split"] == "given" for rows in used.values()):
        given, samples = options.calibration.rows, options.calibration.of_file
        if not isinstance(given, str | Path):
            keys = given_keys(given)
        elif reads_text(type(unwrap(subject.model))):
            keys = given_keys(drawn(calibration_texts(expanded(given)), samples, seed))
        else:
            files = drawn(media_files(subject.model, expanded(given)), samples, seed)
            names = set(digests(files))
            keys = [key for key in scored if key[0] in names]
        seen.setdefault("calibration", []).extend(keys)
    return shared_note(seen, scored, set_name(split))


def scored_keys(subject: Subject, scoring: Scoring) -> Keys:
    """The rows that are scored, read once."""
    return subject.once(("keys", scoring), lambda: keys_of(subject.scored(scoring).examples))


def used_keys(task: Task, used: Mapping[str, Mapping[str, Any]]) -> dict[str, Keys]:
    """The rows of a task of calibration, repair or training, as its record names them."""
    seen: dict[str, Keys] = {}
    for use, rows in used.items():
        if use not in USES or rows["split"] == "given":
            continue
        limit = None if rows["seed"] is None else rows["n"]
        examples = task.load(rows["split"], limit=limit, seed=rows["seed"] or 0)
        seen.setdefault(USES[use], []).extend(keys_of(examples))
    return seen


def given_keys(inputs: object) -> Keys:
    """The texts that were given in place of a task's rows; none where they came as tokens."""
    if isinstance(inputs, EncodedRows) or not isinstance(inputs, list | tuple):
        return []
    rows: list[Any] = [
        written(conversation(row, "A row")) if is_conversation(row) else row for row in inputs
    ]
    rows = [(item,) if isinstance(item, str) else item for item in rows]
    texts = [row for row in rows if isinstance(row, list | tuple) and _are_texts(row)]
    return [tuple(" ".join(text.split()) for text in row) for row in texts]


def set_name(split: str) -> str:
    """What the rows of a split are for: a half that chooses is no half that is held out."""
    half = read_half(split)
    return "selection" if half is not None and half[1] == "selection" else "held-out"


def _are_texts(row: Any) -> bool:
    return bool(row) and all(isinstance(text, str) for text in row)


USES = {"calibration": "calibration", "repair": "calibration", "training": "training"}
"""What a record calls rows, and what they are called in a note."""
