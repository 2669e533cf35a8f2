"""What `headcount doctor` found, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table

from headcount.views.tables.columns import table


def page(found: dict[str, Any]) -> Table:
    """A line for each finding."""
    return table(["what", "found"], _rows(found))


def _rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "headcount", found["headcount"]
    yield "python", f"{found['python']} on {found['platform']}"
    for name, number in found["packages"].items():
        yield name, number or "missing"
    sizes = found["memory"]
    yield "memory", f"{_gigabytes(sizes['available'])} free of {_gigabytes(sizes['total'])}"
    if "threads" in found:
        yield "threads", ", ".join(f"{key} {value}" for key, value in found["threads"].items())
    for device in found.get("devices", []):
        size = f", {_gigabytes(device['memory'])}" if device["memory"] else ""
        yield "device", f"{device['device']} ({device['name']}{size})"
    for name, extra in found["extras"].items():
        yield f"extra: {name}", "installed" if extra["installed"] else extra["install"]
    yield "hub", "offline (HF_HUB_OFFLINE)" if found["offline"] else "allowed"
    if "attention_interface" in found:
        yield "attention interface", "yes" if found["attention_interface"] else "no"
    if "self_check" in found:
        check = found["self_check"]
        yield "self-check", f"{'ok' if check['ok'] else 'FAILED'}: {check['detail']}"


def _gigabytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
