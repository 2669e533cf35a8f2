"""Where a task's rows come from: files, a folder, or a data set of the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import expanded
from headcount.base.names import unknown
from headcount.base.text import short


@dataclass(frozen=True, kw_only=True)
class Source:
    """A user's own data. Everything is optional; a task says what it needs."""

    data: Path | None = None
    """Folder with the splits (`train.tsv`, `dev.csv` …), or a single file, which is split."""
    train: Path | None = None
    """File of the train split, if it is not in `data`."""
    dev: Path | None = None
    """File of the dev split, if it is not in `data`."""
    hub: str | None = None
    """Data set on the hub instead of files: `owner/name` or `owner/name:config`."""
    columns: tuple[str, ...] = ()
    """Names of the text columns: one or two, or a prompt and all its choices."""
    label: str | None = None
    """Name of the label column."""
    labels: tuple[str, ...] = ()
    """The model's class for a label, as in `pos=POSITIVE`."""
    languages: tuple[str, ...] | None = None
    """Suffixes of the two parallel files, source first, as in `en de`."""
    window: int | None = None
    """Causal LM: cut the whole text into windows of this many tokens; without it, into blocks of
    `max_length` with an end token after each line."""
    stride: int | None = None
    """Tokens from one window to the next, at most `window`, the default; with less, a window
    begins with context that earlier windows have scored. Question answering: tokens of a long
    context from one row to the next; by default, two thirds of what fits beside the question."""
    metrics: tuple[str, ...] = ()
    """Which of the task's metrics are computed, in this order: the first is its score."""
    template: str | None = None
    """Multiple choice: what a prompt is put into, as in 'Question: {}\\nAnswer:' (\\n is a new
    line); the prompt as it is when left out."""
    normalizer: Literal["plain", "english"] | None = None
    """Speech: how texts are compared, in lower case without punctuation (plain, the default), or
    as Whisper's authors compare English: numbers as digits, no fillers."""
    size: int | None = None
    """Built-in tasks: number of generated rows in the train split."""
    in_memory: str = ""
    """A name for rows that only one process holds (`hc.task`): nothing can open them again."""

    def __post_init__(self) -> None:
        if self.languages is not None and len(self.languages) != 2:
            raise UsageError("A translation has two languages, as in en de.")
        if self.window is not None and self.window < 2:
            raise UsageError(f"A window has at least 2 tokens, not {self.window}.")
        if self.stride is not None and not 1 <= self.stride <= (self.window or self.stride):
            raise UsageError(
                f"A stride is at least 1 and at most the window: {self.stride} tokens of "
                f"{self.window or 'none'} (--window)."
            )

        if self.template is not None and self.template.count("{}") != 1:
            raise UsageError(
                "A template has {} once, where the prompt goes, as in 'Question: {}\\nAnswer:': "
                f"{short(self.template)}."
            )

    def called(self, known: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """(label, the model's name for it) for the labels that were named; `known` are all."""
        pairs = [text.rpartition("=") for text in self.labels]
        for text, (label, _, name) in zip(self.labels, pairs, strict=True):
            if not label or not name:
                raise UsageError(f"A label is named as in pos=POSITIVE, not '{text}'.")
            if label not in known:
                says = f"The data has no label '{label}'"
                raise unknown(says, label, known, has="It has", most=8)
        for which in (0, 2):
            names = [pair[which].lower() for pair in pairs]
            if twice := [name for name in names if names.count(name) > 1]:
                raise UsageError(
                    f"'{twice[0]}' is named twice in --labels {' '.join(self.labels)}."
                )
        return tuple((label, name) for label, _, name in pairs)

    def folder(self) -> Path:
        """`data` as a folder that exists."""
        if self.data is None:
            raise UsageError("This task needs a folder of data: pass --data DIR.")
        if not self.data.is_dir():
            raise NotFoundError(f"There is no folder '{self.data}'.")
        return self.data


def make_source(**settings: object) -> Source:
    """A source from plain settings: texts become paths, one name becomes a tuple of one."""
    clean = {name: value for name, value in settings.items() if value is not None}
    for name in ("data", "train", "dev"):
        if name in clean:
            clean[name] = expanded(str(clean[name]))
    if isinstance(clean.get("labels"), Mapping):
        clean["labels"] = [f"{label}={name}" for label, name in clean["labels"].items()]  # pyright: ignore[reportAttributeAccessIssue]
    for name in ("columns", "labels", "metrics"):
        if isinstance(clean.get(name), str):
            clean[name] = (clean[name],)
    for name in ("columns", "labels", "metrics", "languages"):
        if name in clean:
            clean[name] = tuple(clean[name])  # pyright: ignore[reportArgumentType]
    unknown = set(clean) - set(Source.__dataclass_fields__)
    if unknown:
        raise UsageError(f"There is no data setting {', '.join(sorted(unknown))}.")
    return Source(**clean)  # pyright: ignore[reportArgumentType]
