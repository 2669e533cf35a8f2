"""The report of `headcount doctor`, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from headcount.views.tables.columns import table


def doctor_table(report: Mapping[str, object]) -> Table:
    """A line for each part of the installation."""
    return table(["what", "state"], _rows(report))


def _rows(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "headcount", report["headcount"]
    yield "python", f"{report['python']} on {report['platform']}"
    for name, number in report["packages"].items():
        yield name, number or "missing"
    sizes = report["memory"]
    yield "memory", f"{_gigabytes(sizes['available'])} free of {_gigabytes(sizes['total'])}"
    if "threads" in report:
        yield "threads", ", ".join(f"{key} {value}" for key, value in report["threads"].items())
    for device in report.get("devices", []):
        size = f", {_gigabytes(device['memory'])}" if device["memory"] else ""
        yield "device", f"{device['device']} ({device['name']}{size})"
    for name, extra in report["extras"].items():
        yield f"extra: {name}", "installed" if extra["installed"] else extra["install"]
    yield "hub", "offline (HF_HUB_OFFLINE)" if report["offline"] else "allowed"
    if "attention_interface" in report:
        yield "attention interface", "yes" if report["attention_interface"] else "no"
    if "self_check" in report:
        check = report["self_check"]
        yield "self-check", f"{'ok' if check['ok'] else 'FAILED'}: {check['detail']}"


def _gigabytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
