"""What changed in the heads: transfer from one model to another, and gates over training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headcount.views.page.reading import (
    Interval,
    Packed,
    Values,
    by_head,
    fill,
    interval,
    number,
    packed,
    text,
)
from headcount.views.page.subjects import PageSubject, labels
from headcount.views.page.walk import ReportInput, ReportItem

if TYPE_CHECKING:
    from headcount.heads import Layout
    from headcount.learned.trace import Trace

MOST_STEPS = 400
"""Noted steps of a trace that are drawn."""
MOST_COUNTS = 600
"""Steps at which open gates, and points at which losses are drawn."""


@dataclass(frozen=True, kw_only=True)
class LayerChange:
    """Drift of a layer, each with its standard error, and the change of its weights."""

    stack: str
    layer: int
    mean: float | None
    mean_stderr: float | None
    max: float | None
    max_stderr: float | None
    hidden: float | None
    hidden_stderr: float | None
    weights: float | None


@dataclass(frozen=True, kw_only=True)
class DriftImportance:
    """Importance of every head on one task, and its correlation with drift."""

    name: str
    values: Values
    pearson: Interval
    p: float | None
    spearman: float | None
    slope: float | None
    intercept: float | None


@dataclass(frozen=True)
class RecallPoint:
    """Recall of a task's heads where the pre-training task keeps a share `at` of its score."""

    at: float | None
    value: float | None
    chance: float | None


@dataclass(frozen=True, kw_only=True)
class PageTransfer:
    """Two models compared: by layer, against importance, and recall."""

    pretrained: str
    finetuned: str
    inputs: str
    n: float | None
    layers: list[LayerChange]
    importance: list[DriftImportance]
    recall: list[RecallPoint]
    command: str | None


def transfers(subject: PageSubject, report: ReportInput) -> list[PageTransfer]:
    """Every transfer between models with the subject's heads."""
    return report.each(subject.of("transfer"), lambda item: _transfer(item, subject.layout, report))


def _transfer(item: ReportItem, layout: Layout, report: ReportInput) -> PageTransfer:
    data = item.data
    drift, change = data.get("drift") or {}, (data.get("weight_change") or {}).get("layers") or {}
    layers = []
    for row in drift.get("layers", []):
        weights = change.get(row["stack"]) or []
        layer = row["layer"]
        layers.append(
            fill(
                LayerChange,
                row,
                layer=layer,
                weights=number(weights[layer]) if layer < len(weights) else None,
            )
        )
    correlations = data.get("correlations") or {}
    importance = []
    for name, by_layer in (data.get("importance") or {}).items():
        line = correlations.get(name) or {}
        importance.append(
            fill(
                DriftImportance,
                line,
                name=name,
                values=by_head(by_layer, layout),
                pearson=interval({**line, "value": line.get("pearson")}) or Interval(None),
            )
        )
    sides = [data.get(side, "?") for side in ("pretrained", "finetuned")]
    names = labels(sides, report)
    return PageTransfer(
        pretrained=names[str(sides[0])],
        finetuned=names[str(sides[1])],
        inputs=text(data.get("inputs", ""), 80),
        n=number(drift.get("n")),
        layers=layers,
        importance=importance,
        recall=[fill(RecallPoint, row) for row in data.get("recall") or []],
        command=item.command,
    )


@dataclass(frozen=True, kw_only=True)
class GateTrace:
    """Gates over training: every head at the noted steps, and counts at every step."""

    name: str
    study: str | None
    method: str
    task: str
    steps: list[int]
    values: Packed
    """(step, head) packed."""
    states: Packed
    """(step, head) packed: 1 is open."""
    largest: float | None
    """Nearly the largest absolute value, for the colours."""
    count_steps: list[int]
    opened: list[int]
    closings: int
    reopenings: int
    scores: list[tuple[float, float]]
    """(step, score)"""
    losses: list[tuple[float, float]]
    """(step, training loss)"""
    fixed: float | None
    """The step at which the gates were fixed."""
    command: str | None


def gates(subject: PageSubject, report: ReportInput) -> list[GateTrace]:
    """Every trace of gates of the subject's heads."""
    return report.each([item for item in subject.of("trace") if item.data.steps], _gates)


def _gates(item: ReportItem) -> GateTrace:
    trace: Trace = item.data
    noted = np.unique(
        np.linspace(0, len(trace.steps) - 1, min(len(trace.steps), MOST_STEPS)).astype(int)
    )
    values = np.array(trace.values, np.float32)[noted]
    states = np.array(trace.states, bool)[noted]
    counted = np.unique(np.linspace(0, max(len(trace.opened) - 1, 0), MOST_COUNTS).astype(int))
    counted = counted if trace.opened else counted[:0]
    scores, losses = (
        [
            (point["step"], value)
            for point in trace.scores
            if (value := number(point.get(name))) is not None
        ]
        for name in ("score", "loss")
    )
    return GateTrace(
        name=item.folder.name,
        study=item.study.name if item.study else None,
        method=text(trace.about.get("method", "gates")),
        task=text(trace.about.get("task") or ""),
        steps=[trace.steps[at] for at in noted],
        values=packed(values, "f4"),
        states=packed(states, "u1"),
        largest=number(float(np.quantile(np.abs(values), 0.98))),
        count_steps=[int(at) + 1 for at in counted],
        opened=[trace.opened[at] for at in counted],
        closings=sum(trace.closings),
        reopenings=sum(trace.reopenings),
        scores=scores,
        losses=losses[:MOST_COUNTS],
        fixed=number((trace.about.get("route") or {}).get("fixed_at_step")),
        command=item.command,
    )
