"""Numbers of every head: what the grid is coloured by, the axes of the scatter, the passport."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headcount.heads import Layout
from headcount.views.page.commands import command_beside, command_in
from headcount.views.page.matrices import own_first
from headcount.views.page.reading import by_head, careful, number, numbers, short_name, text
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem

NAMES = {
    "previous": "previous token", "next": "next token", "same": "same token",
    "first": "first token", "separator": "separators", "duplicate": "duplicate tokens",
    "induction": "induction", "entropy": "entropy", "entropy_share": "entropy, share of the most",
    "reach": "reach", "replaceable": "replaceable share", "cost_alone": "cost of removing it alone",
    "cost_alone_repaired": "cost alone, after repair", "milliseconds": "milliseconds",
    "kilobytes": "kilobytes", "score_alone": "change of score without it",
    "score_alone_repaired": "change of score, after repair",
}  # fmt: skip


def quantities(
    subject: PageSubject, found: ReportInput, made: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Every number of heads that the files have, the most telling first."""
    listed: list[dict[str, Any]] = []
    makers = {
        "importance": _importance, "roles": _roles, "transfer": _transfer, "matrix": _nearness,
        "trace": _gates, "attention": _attention,
    }  # fmt: skip
    for kind, maker in makers.items():
        own = own_first(subject, found) if kind == "matrix" else subject.of(kind)
        for item in own:
            with careful(found, item):
                made_here = maker(item, subject.layout)
                listed += made_here if len(own) == 1 else _apart(made_here, item, found)
    listed += _survival(made, len(subject.layout))
    keyed: dict[str, dict[str, Any]] = {}
    for quantity in listed:
        if any(value is not None for value in quantity["values"]):
            keyed.setdefault(_free(quantity["key"], keyed), quantity)
    return [quantity | {"key": key} for key, quantity in keyed.items()]


def _apart(
    made: list[dict[str, Any]], item: ReportItem, found: ReportInput
) -> list[dict[str, Any]]:
    """What several files measured alike is told apart by the seed of the run, or by the file."""
    folder = item.kind in ("trace", "attention")
    said = text(item.folder.name if folder else item.path.stem, 40)
    if item.study and item.folder.name in found.runs:
        said = f"seed {found.runs[item.folder.name].get('seed', 0)}"
    return [each | {"label": f"{each['label']} · {said}"} for each in made]


def _free(key: str, taken: Mapping[str, Any]) -> str:
    """The key, or with a number behind it where another file had the same."""
    count = 2
    wanted = key
    while wanted in taken:
        wanted, count = f"{key} ({count})", count + 1
    return wanted


def _quantity(key: str, values: Sequence[float | None], **more: Any) -> dict[str, Any]:
    plain = {"label": key, "unit": "", "what": "", "stderr": None, "low": None, "high": None}
    return {"key": key, **plain, "from": "", "command": None, "values": list(values), **more}


def _said(item: ReportItem) -> dict[str, Any]:
    return {"from": item.path.name, "command": command_in(item.data)}


def _importance(item: ReportItem, layout: Layout) -> list[dict[str, Any]]:
    data = item.data
    normalize = data.get("normalize", "none")
    unit = "" if normalize == "none" else f"{normalize} per layer"
    return [
        _quantity(
            "importance", by_head(data["scores"], layout), unit=unit,
            stderr=by_head(data["stderr"], layout) if data.get("stderr") else None,
            what=f"how much the loss feels the head (mean |∂loss/∂gate|, {data.get('n')} examples)",
            **_said(item),
        )
    ]  # fmt: skip


def _roles(item: ReportItem, layout: Layout) -> list[dict[str, Any]]:
    heads, made = len(layout), []
    made += _role(item, heads)
    for name, each in item.data.get("quantities", {}).items():
        columns = {
            side: numbers(each[side]) if isinstance(each.get(side), list) else None
            for side in ("values", "stderr", "low", "high")
        }
        if columns["values"] is None or len(columns["values"]) != heads:
            raise ValueError(f"{text(name, 40)}: not a number for each of {heads} heads")
        made.append(
            _quantity(
                text(name, 60), columns.pop("values") or [],
                label=NAMES.get(name, text(name, 60)), unit=text(each.get("unit") or "", 40),
                what=text(each.get("what") or ""), **columns, **_said(item),
            )
        )  # fmt: skip
    return made


def _role(item: ReportItem, heads: int) -> list[dict[str, Any]]:
    """The role itself: a kind, not an amount, so values are places in a list of names."""
    names = item.data.get("roles") or []
    kinds = [text(name, 40) for name in dict.fromkeys(names) if name is not None]
    if len(names) != heads or not kinds:
        return []
    values = [None if name is None else float(kinds.index(text(name, 40))) for name in names]
    what = "the role that is clearly more than chance; grey heads have none"
    return [_quantity("role", values, what=what, kinds=kinds, **_said(item))]


def _transfer(item: ReportItem, layout: Layout) -> list[dict[str, Any]]:
    data, said = item.data, _said(item)
    drift, change = data.get("drift") or {}, data.get("weight_change") or {}
    pair = f"{short_name(data.get('pretrained', '?'))} → {short_name(data.get('finetuned', '?'))}"
    made = []
    if "attention" in drift:
        errors = drift.get("stderr")
        made.append(
            _quantity(
                "drift", _scores(drift["attention"], layout), label="drift in fine-tuning",
                unit="bits", what=f"Jensen–Shannon divergence of its attention, {pair}",
                stderr=_scores(errors, layout) if errors else None, **said,
            )
        )  # fmt: skip
    if "heads" in change:
        values = _scores(change["heads"], layout)
        what = f"mean absolute change of query, key and value weights, {pair}"
        made.append(_quantity("weight change", values, what=what, **said))
    return made


def _scores(data: Any, layout: Layout) -> list[float | None]:
    """Scores as stack -> layer -> head, with or without their layout."""
    return by_head(data.get("scores", data), layout)


def _nearness(item: ReportItem, layout: Layout) -> list[dict[str, Any]]:
    """How far the nearest other head is, by each distance."""
    found, made = item.data, []
    source = found.provenance
    about = f"{short_name(source.get('model', '?'))}, {text(source.get('inputs', ''), 80)}"
    for name in found.distances:
        values: list[float | None] = []
        for stack in layout.stacks:
            measured = found.measured.get((stack.name, name))
            if measured is None or stack.total < 2:
                values += [None] * stack.total
                continue
            apart = measured.values + np.diag(np.full(stack.total, np.inf))
            values += numbers(apart.min(1).tolist())
        what = f"distance to the head most like it; {about}, {found.count} inputs"
        made.append(
            _quantity(
                f"nearest {text(name, 30)}", values, label=f"nearest head, {text(name, 30)}",
                what=what, **{"from": item.path.name, "command": command_beside(item)},
            )
        )  # fmt: skip
    return made


def _gates(item: ReportItem, layout: Layout) -> list[dict[str, Any]]:
    trace = item.data
    if not trace.values:
        return []
    what = f"what {text(trace.about.get('method', 'training'), 40)} trained for it, at the end"
    values = numbers(trace.values[-1].astype(float).tolist())
    return [_quantity("gate", values, label="gate at the end", what=what,
                      **{"from": item.folder.name, "command": command_beside(item)})]  # fmt: skip


def _attention(item: ReportItem, layout: Layout) -> list[dict[str, Any]]:
    """Of one sentence: entropy and distance of each head."""
    rows: dict[tuple[Any, ...], Any] = {
        (r["stack"], r["layer"], r["head"]): r for r in item.data["heads"] if not r.get("run")
    }
    made = []
    for name, unit in (("entropy", "bits"), ("distance", "tokens")):
        values = [number((rows.get(tuple(head)) or {}).get(name)) for head in layout]
        what = f"of its attention in one sentence: {text(item.data.get('text', ''), 80)}"
        made.append(_quantity(f"{name} in a sentence", values, unit=unit, what=what, **_said(item)))
    return made


def _survival(made: Sequence[Mapping[str, Any]], heads: int) -> list[dict[str, Any]]:
    """In what share of all cuts by a method a head stays."""
    groups: dict[str, list[str]] = {}
    for cut in made:
        if 0 < cut["kept"] < heads and not cut["answers"]:  # the search has that cut already
            groups.setdefault(cut["method"], []).append(cut["mask"])
    listed = []
    for method, masks in groups.items():
        if method.startswith("random") or len(masks) < 3:
            continue
        rows = np.array([[int(digit, 16) >> bit & 1 for digit in mask for bit in (3, 2, 1, 0)]
                         for mask in masks])[:, :heads]  # fmt: skip
        what = f"share of {len(masks)} cuts by {method} in which it stays"
        listed.append(_quantity(f"kept by {method}", numbers(rows.mean(0).tolist()), what=what))
    return listed
