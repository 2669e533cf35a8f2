"""A study as people read it: its plan, what became of its runs, what came out of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from headcount.base.text import duration
from headcount.views.tables.columns import table

if TYPE_CHECKING:
    from headcount.studies.gather import StudyTable
    from headcount.studies.study import PlanSummary, Status

MOST = 20
"""Failed or running runs that are shown."""


def plan_table(found: PlanSummary) -> Table:
    """How many runs, and how long."""
    rows: list[tuple[str, Any]] = [("folder", str(found.folder))]
    rows += [(f"runs of '{name}'", str(count)) for name, count in found.groups.items()]
    rows += [("different runs", str(found.runs)), ("done", str(found.done))]
    hours = "not known: no run is done that they could be judged by"
    if found.hours is not None:
        by = f"{found.judged_by} finished runs" if found.judged_by else "what its file says"
        hours = f"{duration(3600 * found.hours)}, one at a time, judged by {by}"
        if found.unjudged:
            hours += f"; {found.unjudged} runs more are of a kind that nothing is known of"
    rows.append(("time left", hours))
    return table(["study", found.name], rows)


def status_line(found: Status) -> str:
    """`12 done, 2 running, 30 planned`."""
    return ", ".join(f"{count} {name}" for name, count in found.counts.items() if count)


def status_table(found: Status) -> Table:
    """States with their numbers, then what failed and what runs."""
    rows: list[tuple[str, Any]] = [
        (name, str(count)) for name, count in found.counts.items() if count
    ]
    rows += [(f"failed {_run(each)}", str(each["error"])) for each in found.failed[:MOST]]
    rows += [
        (f"{each['state']} {_run(each)}", each["holder"] or "") for each in found.running[:MOST]
    ]
    rows.append(("folder", str(found.folder)))
    return table(["study", found.name], rows)


def _run(each: Any) -> str:
    axes = ", ".join(f"{name} {value}" for name, value in each["axes"].items())
    return f"{each['group']}: {axes}" if axes else each["group"]


def summary_table(found: StudyTable) -> Table:
    """A line for every combination: means over seeds with their intervals."""
    names = list(dict.fromkeys(name for line in found.summary for name in line))
    shown = [name for name in names if not name.endswith((".low", ".high"))]
    rows = [tuple(_shown(line, name) for name in shown) for line in found.summary]
    return table(shown or ["nothing is done yet"], rows)


def _shown(line: Any, name: str) -> str:
    value, low, high = line.get(name), line.get(f"{name}.low"), line.get(f"{name}.high")
    if value is None:
        return ""
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    return text if low is None or high is None else f"{text} [{low:.4f}, {high:.4f}]"
