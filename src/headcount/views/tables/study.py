"""A study as people read it: its plan, the state of its runs, its summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from headcount.base.text import duration
from headcount.views.tables.columns import table

if TYPE_CHECKING:
    from headcount.studies.gather import StudyTable
    from headcount.studies.study import PlanSummary, Status

MOST = 20
"""Failed or running runs that are shown."""


def plan_table(plan: PlanSummary) -> Table:
    """How many runs, and how long."""
    rows = [("folder", str(plan.folder))]
    rows += [(f"runs of '{name}'", str(count)) for name, count in plan.groups.items()]
    rows += [("different runs", str(plan.runs)), ("done", str(plan.done))]
    hours = "not known: no run of the same kind is done"
    if plan.hours is not None:
        by = f"{plan.judged_by} finished runs" if plan.judged_by else "its file"
        hours = f"{duration(3600 * plan.hours)}, one at a time, estimated from {by}"
        if plan.unjudged:
            hours += f"; without {plan.unjudged} runs of kinds that were never timed"
    rows.append(("time left", hours))
    return table(["study", plan.name], rows)


def status_line(status: Status) -> str:
    """`12 done, 2 running, 30 planned`."""
    return ", ".join(f"{count} {name}" for name, count in status.counts.items() if count)


def status_table(status: Status) -> Table:
    """States with their numbers, then failed and running runs."""
    rows = [(name, str(count)) for name, count in status.counts.items() if count]
    rows += [(f"failed {_run(run)}", str(run["error"])) for run in status.failed[:MOST]]
    rows += [(f"{run['state']} {_run(run)}", run["holder"] or "") for run in status.running[:MOST]]
    rows.append(("folder", str(status.folder)))
    return table(["study", status.name], rows)


def _run(run: Mapping[str, Any]) -> str:
    axes = ", ".join(f"{name} {value}" for name, value in run["axes"].items())
    return f"{run['group']}: {axes}" if axes else run["group"]


def summary_table(study: StudyTable) -> Table:
    """A line for every combination: means over seeds with their intervals."""
    names = list(dict.fromkeys(name for line in study.summary for name in line))
    columns = [name for name in names if not name.endswith((".low", ".high"))]
    rows = [tuple(_cell(line, name) for name in columns) for line in study.summary]
    return table(columns or ["nothing is done yet"], rows)


def _cell(line: Mapping[str, object], name: str) -> str:
    value, low, high = line.get(name), line.get(f"{name}.low"), line.get(f"{name}.high")
    if value is None:
        return ""
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    return text if low is None or high is None else f"{text} [{low:.4f}, {high:.4f}]"
