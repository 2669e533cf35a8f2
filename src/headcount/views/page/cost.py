"""What heads cost: timings, parameters and bytes as `headcount bench` measured them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headcount.views.page.commands import command_in
from headcount.views.page.reading import bounds, careful, number, text
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem


def timings(subject: PageSubject, found: ReportInput) -> list[dict[str, Any]]:
    """Each bench of the subject's model, and what a search timed of its answer."""
    listed: list[dict[str, Any]] = []
    for item in subject.of("bench"):
        with careful(found, item):
            data = item.data
            listed.append(
                {
                    "file": item.path.name,
                    "about": _about(data),
                    "share": number(data.get("share_of_flops")),
                    "ceiling": number(data.get("ceiling")),
                    "rows": [_row(row, data.get("shapes", ())) for row in data["timings"]],
                    "notes": [text(note) for note in data.get("notes", [])],
                    "command": command_in(data),
                }
            )
    for item in subject.of("search"):
        with careful(found, item):
            if item.data.get("timing") and item.data.get("speedup"):
                listed.append(_searched(item))
    return listed


def _searched(item: ReportItem) -> dict[str, Any]:
    """The answer beside the model with all heads, as a bench of two rows."""
    data = item.data
    took = data["timing"]["milliseconds"]
    share = 1 - data["kept"] / data["heads"]
    sizes = data.get("parameters") or {}
    dense = {"name": "all heads", "kind": "dense", "heads": data["heads"],
             "speedup": {"value": 1.0}, "seconds": {"value": took["before"] / 1000},
             "parameters": sizes.get("before")}  # fmt: skip
    cut = {"name": f"the answer, {100 * share:.0f} % gone", "kind": "removed",
           "heads": data["kept"], "speedup": data["speedup"],
           "seconds": {"value": took["after"] / 1000},
           "parameters": sizes.get("after")}  # fmt: skip
    return {
        "file": f"in {item.folder.name}",
        "about": _about({**data["timing"], "length": f"{data['timing'].get('length')} tokens"}),
        "share": None,
        "ceiling": None,
        "rows": [_row(dense), _row(cut)],
        "notes": [],
        "command": command_in(data),
    }


def _turned(ratio: dict[str, float | None] | None) -> dict[str, float | None] | None:
    """How many times as fast, where a record has only the share of the dense model's time."""
    sides = {"value": "value", "low": "high", "high": "low"}
    known = ratio or {}
    turned = {side: 1 / old if (old := known.get(own)) else None for side, own in sides.items()}
    return turned if ratio else None


def _about(data: dict[str, Any]) -> str:
    parts = [f"batch {data.get('batch')} × {data.get('reads') or data.get('length')}"]
    parts += [text(data["device"], 30)] if data.get("device") not in (None, "auto") else []
    parts += (
        [f"{data['threads']} thread" + "s" * (data["threads"] != 1)] if data.get("threads") else []
    )
    parts += [f"{data['rounds']} rounds"] if data.get("rounds") else []
    return ", ".join(parts)


def _row(row: dict[str, Any], shapes: Sequence[Any] = ()) -> dict[str, Any]:
    where = f", {row.get('batch')} × {row.get('length')} tokens" if len(shapes) > 1 else ""
    return {
        "name": text(row["name"] + where, 60),
        "kind": text(row.get("kind", ""), 20),
        "heads": number(row.get("heads")),
        "speedup": bounds(row.get("speedup")) or _turned(bounds(row.get("ratio"))),
        "seconds": bounds(row.get("seconds")),
        "best": 1 / ideal if (ideal := number(row.get("ideal"))) else None,
        "parameters": number(row.get("parameters")),
        "memory": number(row.get("memory")),
    }
