"""Numbers of every head: the colours of the grid, the axes of the scatter, and the head card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.views.page.matrices import subject_matrices
from headcount.views.page.pruned import PrunedVariant
from headcount.views.page.reading import Values, by_head, fill, number, numbers, short_name, text
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem

if TYPE_CHECKING:
    from headcount.heads import Layout
    from headcount.learned.trace import Trace
    from headcount.likeness.result import Redundancy

NAMES = {
    "previous": "previous token",
    "next": "next token",
    "same": "same token",
    "first": "first token",
    "separator": "separators",
    "duplicate": "duplicate tokens",
    "entropy_share": "entropy, share of the largest",
    "replaceable": "replaceable share",
    "cost_alone": "loss when removed alone",
    "cost_alone_repaired": "loss when removed alone, repaired",
    "score_alone": "score change when removed alone",
    "score_alone_repaired": "score change when removed alone, repaired",
}
"""What quantities of roles are called; the others have their name."""


@dataclass(frozen=True, kw_only=True)
class HeadQuantity:
    """One number for every head, in the layout's order; None where a head has none."""

    key: str
    values: Values
    label: str = ""
    unit: str = ""
    what: str = ""
    stderr: Values | None = None
    low: Values | None = None
    high: Values | None = None
    kinds: list[str] | None = None
    """Names that the values are places in, of a quantity that is no amount."""
    command: str | None = None


def quantities(
    subject: PageSubject, report: ReportInput, models: Sequence[PrunedVariant]
) -> list[HeadQuantity]:
    """Every number of heads that the files have, the most important first."""
    listed: list[HeadQuantity] = []
    readers = {
        "importance": _importance,
        "roles": _roles,
        "transfer": _transfer,
        "matrix": _nearest,
        "trace": _gates,
        "attention": _attention,
    }
    for kind, read in readers.items():
        items = subject_matrices(subject, report) if kind == "matrix" else subject.of(kind)
        for item in items:
            with report.careful(item):
                suffix = "" if len(items) == 1 else f" · {_source(item, report)}"
                for quantity in read(item, subject.layout):
                    label = f"{quantity.label or quantity.key}{suffix}"
                    listed.append(replace(quantity, label=label, command=item.command))
    listed += _kept_shares(models, len(subject.layout))
    keyed: dict[str, HeadQuantity] = {}
    for quantity in listed:
        if any(value is not None for value in quantity.values):
            keys = [quantity.key, *(f"{quantity.key} ({n})" for n in range(2, len(listed) + 1))]
            key = next(key for key in keys if key not in keyed)
            keyed[key] = replace(quantity, key=key)
    return list(keyed.values())


def _source(item: ReportItem, report: ReportInput) -> str:
    """What several files of one kind are distinguished by: the seed of the run, or the file."""
    if item.study and item.folder.name in report.runs:
        return f"seed {report.runs[item.folder.name].get('seed', 0)}"
    if item.search is not None:
        return text(item.search.name, 40)
    return text(item.folder.name if item.kind in ("trace", "attention") else item.path.stem, 40)


def _importance(item: ReportItem, layout: Layout) -> list[HeadQuantity]:
    data = item.data
    normalize = data.get("normalize", "none")
    return [
        HeadQuantity(
            key="importance",
            values=by_head(data["scores"], layout),
            unit="" if normalize == "none" else f"{normalize} per layer",
            stderr=by_head(data["stderr"], layout) if data.get("stderr") else None,
            what=f"sensitivity of the loss (mean |∂loss/∂gate|, {data.get('n')} examples)",
        )
    ]


def _roles(item: ReportItem, layout: Layout) -> list[HeadQuantity]:
    listed = _role(item.data.get("roles") or [], len(layout))
    for name, quantity in item.data.get("quantities", {}).items():
        values = numbers(quantity["values"])
        if len(values) != len(layout):
            raise ValueError(f"{text(name)}: not a number for each of {len(layout)} heads")
        names = {"key": name, "label": NAMES.get(name, name), "what": quantity.get("what") or ""}
        listed.append(
            fill(HeadQuantity, quantity, values=values, kinds=None, command=None, **names)
        )
    return listed


def _role(names: Sequence[object], heads: int) -> list[HeadQuantity]:
    """The role itself: a kind, not an amount."""
    kinds = [str(name) for name in dict.fromkeys(names) if name is not None]
    if len(names) != heads or not kinds:
        return []
    values = [None if name is None else float(kinds.index(str(name))) for name in names]
    what = "the role that is clearly more than chance; grey heads have none"
    return [HeadQuantity(key="role", values=values, what=what, kinds=kinds)]


def _transfer(item: ReportItem, layout: Layout) -> list[HeadQuantity]:
    data = item.data
    drift, change = data.get("drift") or {}, data.get("weight_change") or {}
    pair = f"{short_name(data.get('pretrained', '?'))} → {short_name(data.get('finetuned', '?'))}"
    listed = []
    if "attention" in drift:
        listed.append(
            HeadQuantity(
                key="drift",
                values=_scores(drift["attention"], layout),
                label="drift in fine-tuning",
                unit="bits",
                what=f"Jensen–Shannon divergence of its attention, {pair}",
                stderr=_scores(drift["stderr"], layout) if drift.get("stderr") else None,
            )
        )
    if "heads" in change:
        values = _scores(change["heads"], layout)
        what = f"mean absolute change of query, key and value weights, {pair}"
        listed.append(HeadQuantity(key="weight change", values=values, what=what))
    return listed


def _scores(data: Mapping[str, Any], layout: Layout) -> Values:
    """Scores as stack -> layer -> head, with or without their layout."""
    return by_head(data.get("scores", data), layout)


def _nearest(item: ReportItem, layout: Layout) -> list[HeadQuantity]:
    """How far the nearest other head is, by each distance."""
    redundancy: Redundancy = item.data
    model, inputs = (redundancy.provenance.get(name, "") for name in ("model", "inputs"))
    source = f"{short_name(model)}, {text(inputs, 80)}, {redundancy.count} inputs"
    listed = []
    for name in redundancy.distances:
        values: Values = []
        for stack in layout.stacks:
            measured = redundancy.measured.get((stack.name, name))
            if measured is None or stack.total < 2:
                values += [None] * stack.total
            else:
                apart = measured.values + np.diag(np.full(stack.total, np.inf))
                values += numbers(apart.min(1).tolist())
        distance, what = text(name, 30), f"distance to the most similar head; {source}"
        label = f"nearest head, {distance}"
        key = f"nearest {distance}"
        listed.append(HeadQuantity(key=key, values=values, label=label, what=what))
    return listed


def _gates(item: ReportItem, layout: Layout) -> list[HeadQuantity]:
    trace: Trace = item.data
    if not trace.values:
        return []
    what = f"what {text(trace.about.get('method', 'training'), 40)} trained for it, at the end"
    values = numbers(trace.values[-1].astype(float).tolist())
    return [HeadQuantity(key="gate", values=values, label="gate at the end", what=what)]


def _attention(item: ReportItem, layout: Layout) -> list[HeadQuantity]:
    """Of one sentence: entropy and distance of each head."""
    rows: dict[tuple[object, ...], Mapping[str, object]] = {
        (r["stack"], r["layer"], r["head"]): r for r in item.data["heads"] if not r.get("run")
    }
    picture = item.data.get("picture") is not None
    named = text(item.data.get("text", ""))
    where = "image" if picture else "sentence"
    what = f"of its attention in one {where}: {named}"
    return [
        HeadQuantity(
            key=f"{name} in {'an' if picture else 'a'} {where}",
            values=[number((rows.get(tuple(head)) or {}).get(name)) for head in layout],
            unit=unit,
            what=what,
        )
        for name, unit in (("entropy", "bits"), ("distance", "patches" if picture else "tokens"))
    ]


def _kept_shares(models: Sequence[PrunedVariant], heads: int) -> list[HeadQuantity]:
    """In what share of all pruned models of a method a head is kept."""
    groups: dict[str, list[str]] = {}
    for model in models:
        if 0 < model.kept < heads and not model.search:  # the search's runs have that model already
            groups.setdefault(model.method, []).append(model.mask)
    listed = []
    for method, masks in groups.items():
        if method.startswith("random") or len(masks) < 3:
            continue
        flags = [[int(d, 16) >> bit & 1 for d in mask for bit in (3, 2, 1, 0)] for mask in masks]
        shares = numbers(np.array(flags)[:, :heads].mean(0).tolist())
        key, what = (
            f"kept by {method}",
            f"share of {len(masks)} models pruned by {method} that keep it",
        )
        listed.append(HeadQuantity(key=key, values=shares, label=key, what=what))
    return listed
