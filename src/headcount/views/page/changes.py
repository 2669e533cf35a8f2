"""What changed in the heads: transfer from one model to another, and gates over training."""

from __future__ import annotations

from typing import Any

import numpy as np

from headcount.views.page.commands import command_beside, command_in
from headcount.views.page.models import labels
from headcount.views.page.reading import (
    by_head,
    careful,
    number,
    packed,
    text,
)
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem

SIDES = ("pretrained", "finetuned")
MOST_STEPS = 400
"""Noted steps of a trace that are drawn."""


def transfers(subject: PageSubject, found: ReportInput) -> list[dict[str, Any]]:
    """Two models compared: by layer, against importance, and recall."""
    listed: list[dict[str, Any]] = []
    for item in subject.of("transfer"):
        with careful(found, item):
            names = labels((item.data.get(side, "?") for side in SIDES), found)
            two = {side: names[str(item.data.get(side, "?"))] for side in SIDES}
            listed.append(_transfer(item, subject) | two)
    return listed


def _transfer(item: ReportItem, subject: PageSubject) -> dict[str, Any]:
    data = item.data
    drift = data.get("drift") or {}
    columns = ("mean", "mean_stderr", "max", "max_stderr", "hidden", "hidden_stderr")
    change = (data.get("weight_change") or {}).get("layers") or {}
    layers = [
        {"stack": text(row["stack"], 20), "layer": row["layer"]}
        | {name: number(row.get(name)) for name in columns}
        | {"weights": _at(change.get(row["stack"]), row["layer"])}
        for row in drift.get("layers", [])
    ]
    importance = {
        text(name, 60): by_head(by_layer, subject.layout)
        for name, by_layer in (data.get("importance") or {}).items()
    }
    return {
        "inputs": text(data.get("inputs", ""), 80),
        "n": number(drift.get("n")),
        "layers": layers,
        "importance": importance,
        "correlations": [
            {"name": text(name, 60)} | {key: number(value) for key, value in each.items()}
            for name, each in (data.get("correlations") or {}).items()
        ],
        "recall": [
            {key: number(row.get(key)) for key in ("at", "value", "chance")}
            for row in data.get("recall") or []
        ],
        "command": command_in(data),
    }


def _at(values: Any, place: int) -> float | None:
    return number(values[place]) if isinstance(values, list) and place < len(values) else None


def gates(subject: PageSubject, found: ReportInput) -> list[dict[str, Any]]:
    """Gates over training: every head at the noted steps, and counts at every step."""
    listed: list[dict[str, Any]] = []
    for item in subject.of("trace"):
        if item.data.steps:
            with careful(found, item):
                listed.append(_gates(item))
    return listed


def _gates(item: ReportItem) -> dict[str, Any]:
    trace = item.data
    places = np.unique(
        np.linspace(0, len(trace.steps) - 1, min(len(trace.steps), MOST_STEPS)).astype(int)
    )
    values = np.array(trace.values, np.float32)[places]
    states = np.array(trace.states, bool)[places]
    every = np.unique(np.linspace(0, max(len(trace.opened) - 1, 0), 600).astype(int))
    scores = [point for point in trace.scores if number(point.get("score")) is not None]
    return {
        "name": item.folder.name,
        "study": item.study.name if item.study else None,
        "method": text(trace.about.get("method", "gates"), 60),
        "task": text(trace.about.get("task") or "", 60),
        "steps": [trace.steps[place] for place in places],
        "values": packed(values, "f4"),
        "states": packed(states, "u1"),
        "most": number(float(np.quantile(np.abs(values), 0.98))),
        "count_steps": [int(place) + 1 for place in every] if trace.opened else [],
        "opened": [trace.opened[place] for place in every] if trace.opened else [],
        "closings": sum(trace.closings),
        "reopenings": sum(trace.reopenings),
        "scores": [{"step": p["step"], "score": number(p["score"]), "n": number(p.get("n"))}
                   for p in scores],
        "losses": [{"step": p["step"], "loss": number(p["loss"])}
                   for p in trace.scores if number(p.get("loss")) is not None][:600],
        "command": command_beside(item),
        "fixed": number((trace.about.get("route") or {}).get("fixed_at_step")),
    }  # fmt: skip
