"""What belongs together: everything about one model on one task is a subject of the page.

And what the page calls models: by their names, or as the runs of a study made them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headcount.heads import Layout
from headcount.views.page.reading import parts_of, short_name, text
from headcount.views.page.walk import ReportInput, ReportItem

SCORED = ("prune", "importance", "roles", "study")
"""What is about one model and one task, and makes a subject."""
ALONE = ("matrix", "trace", "transfer")
"""What makes a subject where no other has its layout."""
BESIDE = ("full", "maps", "file")
"""What is read together with the file beside it."""


@dataclass(kw_only=True)
class PageSubject:
    """One model on one task, and the files about it."""

    model: str
    task: str | None
    layout: Layout
    weights: str | None
    items: list[ReportItem] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the chooser calls it."""
        return f"{self.model} on {self.task}" if self.task else self.model

    @property
    def paths(self) -> set[str]:
        """The model as its records name it."""
        models = [item.data.get("model") for item in self.of("prune", "importance", "roles")]
        return {str(model) for model in models if model}

    def of(self, *kinds: str) -> list[ReportItem]:
        """Its items of some kinds."""
        return [item for item in self.items if item.kind in kinds]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The model and the task that a file is about."""

    model: str
    layout: Layout
    task: str | None = None
    weights: str | None = None
    base: str | None = None
    """What made the model, of a run that starts from another one: all its seeds are one model."""

    @property
    def key(self) -> Hashable:
        """The same for all files of one subject."""
        return self.base or self.weights or self.model, self.task, str(self.layout)

    def is_of(self, subject: PageSubject) -> bool:
        """Whether a subject has these weights; where they are unknown, this name."""
        if subject.task is None or not _same(self.layout, subject.layout):
            return False
        if subject.weights and self.weights:
            return subject.weights == self.weights
        return subject.model == self.model


def subjects(report: ReportInput) -> list[PageSubject]:
    """All files, put together by model and task; subjects with most files come first."""
    known: dict[Hashable, PageSubject] = {}

    def subject(origin: Origin) -> PageSubject:
        new = PageSubject(
            model=origin.model, task=origin.task, layout=origin.layout, weights=origin.weights
        )
        return known.setdefault(origin.key, new)

    scored = report.each(report.of(*SCORED), lambda item: (item, _origin(item, report)))
    for item, origin in scored:
        if origin is not None and origin.task is not None:
            subject(origin).items.append(item)
    for item, origin in scored:
        if origin is not None and origin.task is None:  # it is about the model on every task
            tasks = [other for other in known.values() if origin.is_of(other)]
            for other in tasks or [subject(origin)]:
                other.items.append(item)
    for item in report.of(*ALONE):
        with report.careful(item):
            layout = _layout(item)
            if not any(_same(layout, other.layout) for other in known.values()):
                model = model_name(_model(item), report, seed=False)
                subject(Origin(model=short_name(model), layout=layout))
    every = list(known.values())
    for item in report.items:
        if item.kind not in SCORED and item.kind not in BESIDE:
            with report.careful(item):
                for one in [one for one in every if _is_about(item, one, every, report)]:
                    one.items.append(item)
    for one in every:
        one.items = _without_details(one.items)
    return sorted(every, key=lambda subject: -len(subject.items))


def _without_details(items: list[ReportItem]) -> list[ReportItem]:
    """What a search measured for the page gives way to what a command measured of the same kind."""
    measured = {item.kind for item in items if item.search is None}
    return [item for item in items if item.search is None or item.kind not in measured]


def _origin(item: ReportItem, report: ReportInput) -> Origin | None:
    """Of a run of a study that starts from a training, all seeds of it are one model."""
    layout = _layout(item)
    if not len(layout):
        return None
    if item.kind == "study":
        model, task, weights = (item.data["about"].get(key) for key in ("model", "task", "weights"))
    else:
        identity, run = item.data.get("identity") or {}, item.data.get("run") or {}
        model = model_name(_model(item), report, seed=False)
        task = item.data.get("task") or identity.get("task") or run.get("task")
        weights = identity.get("weights")
    base = base_of(item.data["run"]) if item.study else None
    task = None if task is None else text(task, 80)
    name = short_name(model or "model")
    return Origin(model=name, layout=layout, task=task, weights=weights, base=base)


def _model(item: ReportItem) -> object:
    """The model of a file, as it names it."""
    data = item.data
    if item.kind in ("matrix", "trace"):
        return getattr(data, "provenance", {}).get("model", item.path.stem)
    if item.kind == "transfer":
        return data.get("finetuned", item.path.stem)
    if item.kind == "train":  # the model that it made
        return data["run"] if item.study else Path(item.path).resolve().parent
    identity, run = data.get("identity") or {}, data.get("run") or {}
    return data.get("model") or identity.get("model") or run.get("model") or item.path.stem


def _layout(item: ReportItem) -> Layout:
    if item.kind in ("matrix", "trace"):
        return item.data.layout
    data = item.data["about"] if item.kind == "study" else item.data
    return Layout.from_json(data["mask"]["layout"] if item.kind == "prune" else data["layout"])


def _is_about(
    item: ReportItem, subject: PageSubject, known: Sequence[PageSubject], report: ReportInput
) -> bool:
    """Whether a file belongs to a subject: by its layout, else by its model and task."""
    data = item.data
    if item.kind == "search":
        runs = {id(one) for one in known for run in one.of("prune") if run.study == item.folder}
        return id(subject) in runs or (not runs and data.get("heads") == len(subject.layout))
    if item.kind == "bench":
        dense = [row["heads"] for row in data["timings"] if row.get("kind") == "dense"]
        model = model_name(data.get("model") or "", report, seed=False)
        named = any(model == other.model for other in known)
        return set(dense) == {len(subject.layout)} and (model == subject.model or not named)
    if item.kind == "attention":
        heads = {(row["stack"], row["layer"], row["head"]) for row in data["heads"]}
        return heads <= set(map(tuple, subject.layout))
    if item.kind in ALONE or ("layout" in data and item.kind not in ("train", "evaluate")):
        return _same(_layout(item), subject.layout)
    model = model_name(_model(item), report, seed=False)
    return text(data.get("task"), 80) == subject.task and model == subject.model


def _same(one: Layout, other: Layout) -> bool:
    return [(stack.name, stack.heads) for stack in one.stacks] == [
        (stack.name, stack.heads) for stack in other.stacks
    ]


MADE = {"train": "trained", "prune": "pruned"}
"""What a run of some kind does to a model."""


def model_name(model: object, report: ReportInput, *, seed: bool = True) -> str:
    """A model's name; of one that a run of a study made, what it was made of.

    >>> model_name({"kind": "train", "model": "hub/bert", "seed": 1}, ReportInput())
    'bert, trained, seed 1'
    """
    run = model if isinstance(model, Mapping) else None
    if run is None:
        parts = parts_of(model)
        run = report.runs.get(parts[-1]) if parts[-2:-1] == ["runs"] else None
    if run is None:
        return short_name(model)
    base = model_name(run.get("model", "?"), report, seed=False)
    kind = str(run.get("kind", "run"))
    return f"{base}, {MADE.get(kind, kind)}" + (f", seed {run.get('seed', 0)}" if seed else "")


def base_of(run: Mapping[str, object]) -> str | None:
    """What made the model of a run, whatever the seeds; None where no other run did."""

    def seedless(value: object) -> object:
        if isinstance(value, Mapping):
            return {name: seedless(part) for name, part in value.items() if name != "seed"}
        return value

    model = run.get("model")
    if not isinstance(model, Mapping) or "in_memory" in model:
        return None
    return json.dumps(seedless(model), sort_keys=True)


def labels(models: Iterable[object], report: ReportInput) -> dict[str, str]:
    """A label for each of several models, all different, with its phase where that is known."""
    names = {model: model_name(model, report) for model in map(str, models)}
    counts = Counter(names.values())
    phases = _phases(report)
    return {
        model: ("/".join(parts_of(model)[-2:]) if counts[name] > 1 else name)
        + phases.get(model, "")
        for model, name in names.items()
    }


def _phases(report: ReportInput) -> dict[str, str]:
    """Models that are known to be from before or after fine-tuning."""
    phases: dict[str, str] = {}
    for item in report.of("transfer"):
        phases[str(item.data.get("pretrained"))] = " (pre-trained)"
        phases[str(item.data.get("finetuned"))] = " (fine-tuned)"
    for item in report.of("train"):
        phases.setdefault(str(item.folder), " (fine-tuned)")
        phases.setdefault(str((item.data.get("run") or {}).get("model")), " (pre-trained)")
    return phases
