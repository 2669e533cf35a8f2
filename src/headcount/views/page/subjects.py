"""What belongs together: everything about one model on one task is a subject of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headcount.heads import Layout
from headcount.views.page.models import base_of, model_name
from headcount.views.page.reading import careful, short_name, text
from headcount.views.page.walk import ReportInput, ReportItem

SCORED = ("prune", "importance", "roles", "study")
"""What is about one model and one task, and makes a subject."""
SHARED = ("matrix", "transfer", "trace", "redundancy")
"""What is about a layout, and belongs to every subject that has it."""


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
        told = [item.data.get("model") for item in self.of("prune", "importance", "roles")]
        return {str(model) for model in told if model}

    def of(self, *kinds: str) -> list[ReportItem]:
        """Its items of some kinds."""
        return [item for item in self.items if item.kind in kinds]


def subjects(found: ReportInput) -> list[PageSubject]:
    """Everything that was found, put together; those with most files come first."""
    made: dict[Any, PageSubject] = {}
    later: list[tuple[ReportItem, Layout, dict[str, Any]]] = []
    for item in found.of(*SCORED):
        with careful(found, item):
            about, layout = _about(item, found), _layout(item)
            if layout is not None and len(layout):
                if about["task"] is None:
                    later.append((item, layout, about))
                else:
                    _subject(made, layout, about).items.append(item)
    for item, layout, about in later:  # without a task, it is about the model on every task
        own = [each for each in made.values() if _is_model(each, layout, about)]
        for each in own or [_subject(made, layout, about)]:
            each.items.append(item)
    for item in found.of("matrix", "trace"):
        if not any(_same(item.data.layout, each.layout) for each in made.values()):
            model = getattr(item.data, "provenance", {}).get("model", item.path.stem)
            _subject(made, item.data.layout, {"model": model_name(model, found, seed=False)})
    for item in found.of("transfer"):
        with careful(found, item):
            layout = Layout.from_json(item.data["layout"])
            if not any(_same(layout, each.layout) for each in made.values()):
                model = item.data.get("finetuned", item.path.stem)
                _subject(made, layout, {"model": model_name(model, found, seed=False)})
    for item in found.items:
        if item.kind not in SCORED:
            _attach(item, list(made.values()), found)
    return sorted(made.values(), key=lambda subject: -len(subject.items))


def _subject(made: dict[Any, PageSubject], layout: Layout, about: Mapping[str, Any]) -> PageSubject:
    name, task = short_name(about.get("model", "model")), about.get("task")
    task = None if task is None else text(task, 80)
    key = (about.get("base") or about.get("weights") or name, task, str(layout))
    fresh = PageSubject(model=name, task=task, layout=layout, weights=about.get("weights"))
    return made.setdefault(key, fresh)


def _is_model(subject: PageSubject, layout: Layout, about: Mapping[str, Any]) -> bool:
    """Whether a subject is of these weights; where they are unknown, of this name."""
    if subject.task is None or not _same(layout, subject.layout):
        return False
    if subject.weights and about.get("weights"):
        return subject.weights == about["weights"]
    return subject.model == short_name(about.get("model", ""))


def _about(item: ReportItem, found: ReportInput) -> dict[str, Any]:
    """Model, weights and task of a file.

    Of a study whose runs start from trainings of its own, all seeds of one training are one model.
    """
    data = item.data
    if item.kind == "study":
        return {"task": None, **data["about"]}
    identity, run = data.get("identity") or {}, data.get("run") or {}
    model = data.get("model") or identity.get("model") or run.get("model") or item.path.stem
    base = base_of(run) if item.study else None
    return {
        "model": model_name(model, found, seed=False),
        "base": base,
        "task": data.get("task") or identity.get("task") or run.get("task"),
        "weights": identity.get("weights"),
    }


def _layout(item: ReportItem) -> Layout | None:
    data = item.data["about"] if item.kind == "study" else item.data
    plain = data["mask"]["layout"] if item.kind == "prune" else data.get("layout")
    return None if plain is None else Layout.from_json(plain)


def _attach(item: ReportItem, known: list[PageSubject], found: ReportInput) -> None:
    """Give a file to every subject that it is about."""
    with careful(found, item):
        for subject in known:
            if _is_about(item, subject, known, found):
                subject.items.append(item)


def _is_about(
    item: ReportItem, subject: PageSubject, known: list[PageSubject], found: ReportInput
) -> bool:
    data = item.data
    if item.kind in ("matrix", "trace"):
        return _same(data.layout, subject.layout)
    if item.kind in SHARED:
        return _same(Layout.from_json(data["layout"]), subject.layout)
    if item.kind == "search":
        runs = [each for each in subject.of("prune") if each.study == item.folder]
        others = [each for one in known for each in one.of("prune") if each.study == item.folder]
        return bool(runs) or (not others and data.get("heads") == len(subject.layout))
    if item.kind == "bench":
        dense = [row["heads"] for row in data["timings"] if row.get("kind") == "dense"]
        model = model_name(data.get("model") or "", found, seed=False)
        named = any(model == each.model for each in known)
        return dense == [len(subject.layout)] and (model == subject.model or not named)
    if item.kind == "attention":
        return {(row["stack"], row["layer"], row["head"]) for row in data["heads"]} <= set(
            map(tuple, subject.layout)
        )
    if item.kind in ("train", "evaluate"):
        return (
            text(data.get("task"), 80) == subject.task and _model_of(item, found) == subject.model
        )
    if item.kind in ("full", "mask", "maps"):
        return item.kind == "mask" and _same(Layout.from_json(data["layout"]), subject.layout)
    return False


def _model_of(item: ReportItem, found: ReportInput) -> str:
    """The model a record is about: what a training made, or what was scored."""
    if item.kind == "train":
        made = item.data["run"] if item.study else Path(item.path).resolve().parent
        return model_name(made, found, seed=False)
    return model_name(item.data.get("model") or item.data["run"]["model"], found, seed=False)


def _same(one: Layout, other: Layout) -> bool:
    return [(each.name, each.heads) for each in one.stacks] == [
        (each.name, each.heads) for each in other.stacks
    ]
