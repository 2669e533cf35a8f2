"""What heads cost: timings, parameters and bytes as `headcount bench` measured them."""

from __future__ import annotations

from typing import Any

from headcount.views.page.reading import bounds, careful, number, text
from headcount.views.page.subjects import Subject
from headcount.views.page.walk import Found


def timings(subject: Subject, found: Found) -> list[dict[str, Any]]:
    """Each bench of the subject's model."""
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
                    "rows": [_row(row) for row in data["timings"]],
                    "notes": [text(note) for note in data.get("notes", [])],
                    "command": text(data["command"]) if data.get("command") else None,
                }
            )
    return listed


def _about(data: dict[str, Any]) -> str:
    parts = [f"batch {data.get('batch')} × {data.get('reads') or data.get('length')}"]
    parts += [text(data["device"], 30)] if data.get("device") not in (None, "auto") else []
    parts += (
        [f"{data['threads']} thread" + "s" * (data["threads"] != 1)] if data.get("threads") else []
    )
    parts += [f"{data['rounds']} rounds"] if data.get("rounds") else []
    return ", ".join(parts)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": text(row["name"], 60),
        "kind": text(row.get("kind", ""), 20),
        "heads": number(row.get("heads")),
        "ratio": bounds(row.get("ratio")),
        "seconds": bounds(row.get("seconds")),
        "ideal": number(row.get("ideal")),
        "parameters": number(row.get("parameters")),
        "memory": number(row.get("memory")),
    }
