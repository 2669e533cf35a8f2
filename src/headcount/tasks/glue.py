"""The nine GLUE tasks, from the hub or from a folder in GLUE's official layout.

Metrics as in the papers: Matthews (CoLA), F1 (MRPC), Spearman (STS-B), the mean of accuracy and
F1 (QQP), accuracy elsewhere; MNLI comes as `mnli` (matched) and `mnli-mm` (mismatched).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks.files import Table, listing, read_delimited, read_lines, read_table
from headcount.tasks.hub import fetch
from headcount.tasks.source import Source
from headcount.tasks.task import Examples, Task

HUB = "nyu-mll/glue"


@dataclass(frozen=True, kw_only=True)
class Glue:
    """How one GLUE task is laid out, in its official folder and on the hub."""

    folder: str
    config: str
    texts: tuple[str, ...]
    """Names of the text columns in the official files."""
    hub_texts: tuple[str, ...] = ()
    """Their names on the hub, where they differ."""
    label: str = "label"
    classes: dict[str, str] | None = None
    """What the label column says -> the class's name, in the order of the class numbers."""
    metrics: tuple[str, ...] = ("accuracy",)
    header: tuple[str, ...] | None = None
    """Column names of files that have no header line."""
    dev: str = "dev"
    """The stem of the dev file."""
    hub_dev: str = "validation"
    skip_short: bool = False


TWO = ("sentence1", "sentence2")
ENTAILMENT = {"entailment": "entailment", "not_entailment": "not_entailment"}
MNLI = Glue(
    folder="MNLI",
    config="mnli",
    texts=TWO,
    hub_texts=("premise", "hypothesis"),
    label="gold_label",
    classes={name: name for name in ("entailment", "neutral", "contradiction")},
    dev="dev_matched",
    hub_dev="validation_matched",
)
LAYOUTS: dict[str, Glue] = {
    "cola": Glue(
        folder="CoLA",
        config="cola",
        texts=("sentence",),
        classes={"0": "unacceptable", "1": "acceptable"},
        metrics=("matthews", "accuracy"),
        header=("source", "label", "mark", "sentence"),
    ),
    "sst2": Glue(
        folder="SST-2",
        config="sst2",
        texts=("sentence",),
        classes={"0": "negative", "1": "positive"},
    ),
    "mrpc": Glue(
        folder="MRPC",
        config="mrpc",
        texts=("#1 String", "#2 String"),
        hub_texts=TWO,
        label="Quality",
        classes={"0": "not_equivalent", "1": "equivalent"},
        metrics=("f1", "accuracy"),
    ),
    "qqp": Glue(
        folder="QQP",
        config="qqp",
        texts=("question1", "question2"),
        label="is_duplicate",
        classes={"0": "not_duplicate", "1": "duplicate"},
        metrics=("accuracy_f1", "accuracy", "f1"),
        skip_short=True,
    ),
    "stsb": Glue(
        folder="STS-B", config="stsb", texts=TWO, label="score", metrics=("spearman", "pearson")
    ),
    "mnli": MNLI,
    "mnli-mm": Glue(
        **{**MNLI.__dict__, "dev": "dev_mismatched", "hub_dev": "validation_mismatched"}
    ),
    "qnli": Glue(folder="QNLI", config="qnli", texts=("question", "sentence"), classes=ENTAILMENT),
    "rte": Glue(folder="RTE", config="rte", texts=TWO, classes=ENTAILMENT),
    "wnli": Glue(
        folder="WNLI", config="wnli", texts=TWO, classes={"0": "not_entailment", "1": "entailment"}
    ),
}


def glue_task(name: str, source: Source) -> Task:
    """One of the nine tasks; rows come from `source.data` when it is given, else from the hub."""
    spec = LAYOUTS[name]
    kind = "classification" if spec.classes else "regression"
    load = partial(_from_folder, name, spec, source) if _has_files(source) else None
    labels = tuple(spec.classes.values()) if spec.classes else ()
    return Task(
        name=name,
        kind=kind,
        texts=spec.hub_texts or spec.texts,
        labels=labels,
        called=source.called(labels),
        metrics=spec.metrics,
        loader=load or partial(_from_hub, name, spec),
    )


cola, sst2, mrpc, qqp, stsb, mnli, mnli_mm, qnli, rte, wnli = (
    partial(glue_task, name) for name in LAYOUTS
)


def _has_files(source: Source) -> bool:
    return not (source.data is None and source.train is None and source.dev is None)


def _from_folder(name: str, spec: Glue, source: Source, split: str) -> Examples:
    columns = [*spec.texts, spec.label]
    explicit = source.train if split == "train" else source.dev
    if explicit is not None:
        table = _read(explicit, spec, columns)
        return _examples(table, spec, explicit)
    folder = _task_folder(source.folder(), spec)
    stem = "train" if split == "train" else spec.dev
    path = folder / f"{stem}.tsv"
    if name == "mrpc" and not path.is_file():
        table, path = _official_mrpc(folder, split, columns)
    elif not path.is_file():
        raise NotFoundError(
            f"No data for task '{name}' in '{folder}': neither {spec.folder}/{stem}.tsv nor "
            f"{stem}.tsv is there; found {listing(folder)}."
        )
    else:
        table = _read(path, spec, columns)
    return _examples(table, spec, path)


def _read(path: Path, spec: Glue, columns: Sequence[str]) -> Table:
    if path.suffix.lower() != ".tsv":
        return read_table(path, columns)
    return read_delimited(path, columns, header=spec.header, skip_short=spec.skip_short)


def _task_folder(data: Path, spec: Glue) -> Path:
    """`data` itself, or its sub-folder with the task's official name in any case."""
    for child in sorted(data.iterdir()):
        if child.is_dir() and child.name.lower() in (spec.folder.lower(), spec.config):
            return child
    return data


def _official_mrpc(folder: Path, split: str, columns: Sequence[str]) -> tuple[Table, Path]:
    """MRPC as first published: GLUE's dev rows are those of the train file in dev_ids.tsv."""
    train, test = (folder / f"msr_paraphrase_{part}.txt" for part in ("train", "test"))
    if not train.is_file():
        raise NotFoundError(
            f"No data for task 'mrpc' in '{folder}': neither {split}.tsv nor "
            f"msr_paraphrase_train.txt is there; found {listing(folder)}."
        )
    if not (folder / "dev_ids.tsv").is_file():
        path = train if split == "train" else test
        return read_delimited(path, columns), path
    ids = {tuple(line.split("\t")[:2]) for line in read_lines(folder / "dev_ids.tsv")}
    table = read_delimited(train, [*columns, "#1 ID", "#2 ID"])
    keys = zip(table.pop("#1 ID"), table.pop("#2 ID"), strict=True)
    chosen = [(key in ids) == (split == "dev") for key in keys]
    rows = {
        name: [value for value, take in zip(column, chosen, strict=True) if take]
        for name, column in table.items()
    }
    return rows, train


def _examples(table: Table, spec: Glue, path: Path) -> Examples:
    raw = table[spec.label]
    labels = numbers(raw, path) if spec.classes is None else classes(raw, spec.classes, path)
    return Examples(tuple(table[column] for column in spec.texts), labels)


def numbers(raw: Sequence[str], path: Path) -> np.ndarray:
    """A column of scores; every value must be a finite number."""
    values = np.empty(len(raw))
    bad: list[str] = []
    for row, text in enumerate(raw):
        try:
            values[row] = float(text)
            if not np.isfinite(values[row]):
                raise ValueError
        except ValueError:
            bad.append(f"row {row + 1} '{text[:24]}'")
    _refuse(bad, "a number", path)
    return values


def classes(raw: Sequence[str], names: dict[str, str], path: Path) -> np.ndarray:
    """A column of class labels as class numbers; every value must be a known one."""
    order = {value: number for number, value in enumerate(names)}
    bad = [f"row {row + 1} '{text[:24]}'" for row, text in enumerate(raw) if text not in order]
    _refuse(bad, f"one of {', '.join(names)}", path)
    return np.array([order[text] for text in raw], dtype=np.int64)


def _refuse(bad: Sequence[str], wanted: str, path: Path) -> None:
    if bad:
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        raise UsageError(
            f"'{path}' has labels that are not {wanted}: {', '.join(bad[:3])}{more}. "
            "Is there a header line too many, or a wrong file?"
        )


def _from_hub(name: str, spec: Glue, split: str) -> Examples:
    rows = fetch(HUB, spec.config, "train" if split == "train" else spec.hub_dev, name)
    labels = np.asarray(rows["label"])
    kept = np.arange(len(labels)) if spec.classes is None else np.flatnonzero(labels >= 0)
    examples = Examples(tuple(list(rows[text]) for text in spec.hub_texts or spec.texts), labels)
    return examples.take(kept)
