"""A subject: one model with its tokenizer and task, each thing about it derived once.

What is loaded, encoded or looked up for one run is there for the next run of the same subject.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.base.files import expanded
from headcount.heads import Layout
from headcount.models import fingerprint
from headcount.models.find import layout
from headcount.models.model_options import ModelOptions
from headcount.models.probe import reads_text
from headcount.runs.values import content, told
from headcount.tasks import Task
from headcount.tasks.as_rows import are_rows, as_rows
from headcount.tasks.calibration import Calibration
from headcount.tasks.catalog import open_task, read_task
from headcount.tasks.conversations import calibration_texts
from headcount.tasks.encoding import EncodedRows, encode_texts, examples_fingerprint
from headcount.tasks.inputs import media_files, media_rows
from headcount.tasks.kinds import task_kind
from headcount.tasks.loading import match, processor_of, room
from headcount.tasks.opening import model_for, open_model
from headcount.tasks.rows import (
    ScoredRows,
    calibration_split,
    first_tokens,
    labelled_rows,
    rows_of_tokens,
)
from headcount.tasks.source import Source
from headcount.tasks.task import sample
from headcount.training.doubts import doubts_about_rows
from headcount.training.scored import scored_rows
from headcount.training.scoring import Scoring

Item = TypeVar("Item")


@dataclass(eq=False, kw_only=True)
class Subject:
    """What a run is about: a model, and a task where there is one."""

    model: PreTrainedModel
    tokenizer: Any = None
    task: Task | None = None
    name: str = ""
    """What the model was called when it was opened."""
    source: Source = field(default_factory=Source)
    model_options: ModelOptions = field(default_factory=ModelOptions)
    fresh: bool = False
    """The model's task head is new: without training it says nothing."""
    head_seed: int = 0
    """What a new task head was drawn by."""
    by_name: bool = False
    """It was opened here, so nobody else holds the model. What is pruned of it shares weights."""
    named: bool = False
    """Model, tokenizer and task were opened by their names: another process can open the same."""
    prepared: dict[str, Any] | None = None
    """What methods have measured on it, shared by the runs of a study; None shares nothing."""
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.task is not None:
            self.task = replace(self.task, loader=cache(self.task.loader))  # every split once
        self.name = self.name or self.model.name_or_path or type(self.model).__name__

    @cached_property
    def layout(self) -> Layout:
        """Which heads the model has."""
        return layout(self.model)

    def with_head(self, seed: int) -> Subject:
        """The same with a new task head drawn by this seed; itself where no head is new."""
        if not self.fresh or seed == self.head_seed:
            return self
        other = make_subject(
            self.name,
            self.task,
            tokenizer=self.tokenizer,
            source=self.source,
            model_options=self.model_options,
            trains=True,
            seed=seed,
        )
        return replace(
            other,
            by_name=self.by_name,
            named=self.named,
            prepared=None if self.prepared is None else {},
        )

    def need_task(self, text: str = "There is no task to take rows from: pass one.") -> Task:
        """The task, or a refusal."""
        if self.task is None:
            raise UsageError(text)
        return self.task

    @property
    def looked_at(self) -> str:
        """The split that methods, recovery and training take their rows from."""
        return calibration_split(self.need_task())

    def rows_of(self, split: str) -> str:
        """How many rows a split has, and a short name for exactly these."""
        task = self.need_task()
        return self.once(("split", split), lambda: examples_fingerprint(task.load(split)))

    def looked(self, calibration: Calibration, seed: int, max_length: int) -> EncodedRows:
        """Labelled rows for what looks at data, drawn anew for every seed."""
        task, tokens = self.need_task(), calibration.tokens
        if tokens is not None:
            return self.once(
                ("looked", "tokens", tokens, seed, max_length),
                lambda: rows_of_tokens(
                    self.model, task, self.tokenizer, tokens, seed=seed, max_length=max_length
                ),
            )
        return self.once(
            ("looked", calibration.samples, seed, max_length),
            lambda: labelled_rows(
                self.model, task, self.tokenizer, limit=calibration.samples, seed=seed,
                max_length=max_length,
            ),
        )  # fmt: skip

    def given(self, calibration: Calibration, max_length: int, seed: int = 0) -> Any:
        """The rows that were given to look at, whatever they came as; None without any.

        Rows of a file are drawn anew for every seed, like those of a task.
        """
        rows, tokens = self._given(calibration, max_length, seed), calibration.tokens
        if rows is None or tokens is None:
            return rows
        if not isinstance(rows, EncodedRows):
            raise UsageError("Tokens are counted in rows, not in batches: pass fewer batches.")
        return first_tokens(rows, tokens)

    def _given(self, calibration: Calibration, max_length: int, seed: int) -> Any:
        inputs = calibration.rows
        if inputs is None:
            return None
        if isinstance(inputs, str | Path):
            path, samples = expanded(inputs), calibration.of_file
            read = partial(read_texts, path, self.model, self.tokenizer, max_length)
            return self.once(
                ("given", told(path), max_length, samples, seed),
                lambda: self._of_kind(read(limit=samples, seed=seed)),
            )
        rows = partial(as_rows, tokenizer=self.tokenizer, max_length=max_length, labels=False)
        if are_rows(inputs):
            return self._of_kind(rows(self.model, inputs))
        return self.once(
            ("given", content(inputs), max_length), lambda: self._of_kind(rows(self.model, inputs))
        )

    def _of_kind(self, rows: Any) -> Any:
        """Rows that know what is drawn for them, where the model's answer does not tell it."""
        task = self.task
        if task is None or not task_kind(task.kind).unlabelled or not isinstance(rows, EncodedRows):
            return rows
        return replace(rows, kind=task.kind)

    def scored(self, scoring: Scoring) -> ScoredRows:
        """The rows that are scored."""
        task = self.need_task()
        return self.once(
            ("scored", scoring), lambda: scored_rows(self.model, task, self.tokenizer, scoring)
        )

    def doubts(self, scoring: Scoring) -> tuple[str, ...]:
        """What must be said of the rows that are scored: truncated, unknown tokens …"""
        rows = self.scored(scoring)
        return self.once(("doubts", scoring), lambda: doubts_about_rows(rows, self.tokenizer))

    def fingerprint(self) -> dict[str, Any]:
        """Class, weights, config and tokenizer; in a study, where nobody changes them, once."""
        if self.prepared is None:
            return fingerprint.identity(self.model, self.tokenizer)
        return self.once("fingerprint", lambda: fingerprint.identity(self.model, self.tokenizer))

    def once(self, key: object, make: Callable[[], object]) -> Any:
        """What was made for this key before, or now."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def make_subject(
    model: Subject | PreTrainedModel | str | os.PathLike[str],
    task: Task | str | None = None,
    *,
    tokenizer: object = None,
    source: Source | None = None,
    model_options: ModelOptions | None = None,
    trains: bool = False,
    seed: int = 0,
) -> Subject:
    """The subject of a model as it is, or by its name; `trains` allows a new task head.

    A subject is its own: what it has derived is there for the next run.
    """
    if isinstance(model, Subject):
        return model
    model_options = model_options or ModelOptions()
    rows = (
        read_task(task, source or Source()) if isinstance(task, str) else task and open_task(task)
    )
    if source is None:
        source = Source() if rows is None else rows.source or Source(in_memory="a Task of Python")
    if isinstance(model, str | os.PathLike):
        name = os.fspath(model)
        loaded, processor, fresh = open_model(name, model_options, rows, trains=trains, seed=seed)
        return Subject(
            model=loaded, tokenizer=tokenizer or processor, task=rows, name=name, source=source,
            model_options=model_options, fresh=fresh, head_seed=seed, by_name=True,
            named=tokenizer is None and not source.in_memory,
        )  # fmt: skip
    held: PreTrainedModel = model_for(model, "headcount", rows)
    if tokenizer is None and rows is not None:
        tokenizer = processor_of(held)
    return Subject(
        model=held, tokenizer=tokenizer, task=rows, source=source, model_options=model_options
    )


class Subjects:
    """What the last runs of a process were about, opened: the next of the same opens nothing."""

    def __init__(self, most: int = 8, size: int = 2**30) -> None:
        self.most, self.size = most, size
        self.held: dict[str, Callable[[], Subject]] = {}
        """How the caller gives subjects that it has opened."""
        self._kept: dict[str, Subject] = {}

    def get(self, key: str, make: Callable[[], Subject]) -> Subject:
        """The subject of this key, opened where it is not among the last ones."""
        make = self.held.get(key, make)
        if key in self._kept:
            self._kept[key] = self._kept.pop(key)  # the last to go
            return self._kept[key]
        while self._kept and (len(self._kept) >= self.most or self._bytes() > self.size):
            del self._kept[next(iter(self._kept))]  # before the next: two large ones may not fit
        self._kept[key] = make()
        return self._kept[key]

    def _bytes(self) -> int:
        """What the weights take; the next model is taken to be as large as the last."""
        sizes = [subject.model.get_memory_footprint() for subject in self._kept.values()]
        return sum(sizes) + sizes[-1]


def read_texts(
    path: Path,
    model: PreTrainedModel,
    tokenizer: Any,
    max_length: int,
    *,
    limit: int | None = None,
    seed: int = 0,
) -> EncodedRows:
    """Texts or conversations of a file as rows of tokens; files, for images or sound."""
    if not reads_text(type(model)):
        return media_rows(model, drawn(media_files(model, path), limit, seed), tokenizer)
    texts = drawn(calibration_texts(path), limit, seed)
    if tokenizer is None:
        raise UsageError("Texts need the model's tokenizer: pass --tokenizer.")
    match(model, tokenizer)
    return encode_texts(texts, tokenizer, max_length=room(model, max_length))


def drawn(items: Sequence[Item], limit: int | None, seed: int) -> list[Item]:
    """At most so many of what a file or folder of calibration rows holds.

    >>> drawn("abcdefghij", 3, seed=0), drawn("ab", 3, seed=0)
    (['c', 'e', 'g'], ['a', 'b'])
    """
    size = len(items)
    return [items[number] for number in sample(size, size if limit is None else limit, seed)]
