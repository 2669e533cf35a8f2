"""What heads cost: timings, parameters and bytes as `headcount bench` or a search measured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headcount.views.page.reading import Interval, fill, interval, number, text
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem


@dataclass(frozen=True, kw_only=True)
class TimedModel:
    """One way of running the model."""

    name: str
    kind: str
    """dense, masked, removed or onnx."""
    heads: float | None
    speedup: Interval | None
    seconds: Interval | None
    max_speedup: float | None = None
    """The most that the FLOPs allow."""
    parameters: float | None = None
    memory: float | None = None


@dataclass(frozen=True, kw_only=True)
class PageBench:
    """The timings of one file."""

    file: str
    about: str
    rows: list[TimedModel]
    share: float | None = None
    """Share of the FLOPs that is in heads."""
    ceiling: float | None = None
    """The speedup without any head, at best."""
    notes: list[str] = field(default_factory=list)
    command: str | None = None


def timings(subject: PageSubject, report: ReportInput) -> list[PageBench]:
    """Each bench of the subject's model, and what a search timed."""
    searches = [item for item in subject.of("search") if item.data.get("timing")]
    return report.each(subject.of("bench"), _of_bench) + report.each(searches, _of_search)


def _of_bench(item: ReportItem) -> PageBench:
    data = item.data
    several = len(data.get("shapes", ())) > 1
    rows = []
    for row in data["timings"]:
        shape = f", {row.get('batch')} × {row.get('length')} tokens" if several else ""
        shape += f", {row['phase']}" if row.get("phase", "forward") != "forward" else ""
        ideal = number(row.get("ideal"))
        rows.append(
            fill(TimedModel, row, name=row["name"] + shape, max_speedup=ideal and 1 / ideal)
        )
    return PageBench(
        file=item.path.name,
        about=_about(data),
        rows=rows,
        share=number(data.get("share_of_flops")),
        ceiling=number(data.get("ceiling")),
        notes=list(map(str, data.get("notes", []))),
        command=item.command,
    )


def _of_search(item: ReportItem) -> PageBench:
    """The selected model beside the model with all heads, as a bench of two rows."""
    data, timing = item.data, item.data["timing"]
    times, sizes = timing["milliseconds"], data.get("parameters") or {}
    selected = f"selected, {data['kept']} of {data['heads']} heads"
    rows = [
        TimedModel(
            name=name,
            kind=kind,
            heads=number(data[heads]),
            speedup=speedup,
            seconds=Interval(times[side] / 1000),
            parameters=number(sizes.get(side)),
        )
        for name, kind, heads, side, speedup in (
            ("all heads", "dense", "heads", "before", Interval(1.0)),
            (selected, "removed", "kept", "after", interval(data["speedup"])),
        )
    ]
    about = _about({**timing, "length": f"{timing.get('length')} tokens"})
    return PageBench(file=f"in {item.folder.name}", about=about, rows=rows, command=item.command)


def _about(data: Mapping[str, object]) -> str:
    parts = [f"batch {data.get('batch')} × {data.get('reads') or data.get('length')}"]
    parts += [text(data["device"], 30)] if data.get("device") not in (None, "auto") else []
    threads = data.get("threads")
    parts += [f"{threads} thread{'s' * (threads != 1)}"] if threads else []
    parts += [f"{data['rounds']} rounds"] if data.get("rounds") else []
    return ", ".join(parts)
