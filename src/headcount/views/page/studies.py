"""Studies of a subject: curves with their bands, and differences with their tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headcount.repair.repairs import done_words
from headcount.views.page.commands import command_in
from headcount.views.page.loose import sum_up, tested
from headcount.views.page.reading import bounds, careful, number, text
from headcount.views.page.rows import rows_said
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem


def studies(
    subject: PageSubject, found: ReportInput, made: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """A curve, a comparison or a sweep each; those without a summary are summed up here."""
    listed: list[dict[str, Any]] = []
    told: set[str] = set()
    heads = len(subject.layout)
    for item in subject.of("study"):
        with careful(found, item):
            listed.append(_study(item, heads))
            told.add(item.folder.name)
    kinds = _kinds(subject, found)
    for name in dict.fromkeys(cut["study"] for cut in made if cut["study"]):
        if name not in told:
            own = [cut for cut in made if cut["study"] == name and cut["score"]]
            kind, command = kinds.get(name, ("stopped", None))
            listed.append(sum_up(str(name), own, heads, kind=kind, command=command))
    return [study for study in listed if study["series"]]


def _kinds(subject: PageSubject, found: ReportInput) -> dict[str, tuple[str, str | None]]:
    """Folders of runs that are no study that was stopped, and what made them."""
    run = "headcount study run {}.yaml"
    files = {
        item.folder.parent.name: (
            "study",
            command_in(item.data) or run.format(text(item.data["name"], 60)),
        )
        for item in found.of("file")
    }
    searches = {
        item.folder.name: ("search", command_in(item.data)) for item in subject.of("search")
    }
    return {**files, **searches}


def _study(item: ReportItem, heads: int) -> dict[str, Any]:
    data, about = item.data, item.data["about"]
    kind = item.path.stem if item.path.stem in ("curve", "compare", "sweep") else "study"
    series: dict[str, list[dict[str, Any]]] = {}
    for row in data["summary"]:
        name = text(row.get("method", about.get("method", kind)), 60)
        score = row.get("score") if isinstance(row.get("score"), dict) else row
        series.setdefault(name, []).append(
            {
                "kept": number(row.get("kept")),
                "removed": 1 - row["kept"] / heads,
                **(bounds(score) or {}),
                "seeds": number(row.get("seeds")),
                "difference": bounds(row.get("difference")),
                "random": tested(row.get("against_random")),
                "all": tested(row.get("against_all_heads")),
                "value_of": number(row.get("value")),
            }
        )
    return {
        "name": item.folder.name,
        "kind": kind,
        "repair": _repair(about),
        "metric": text(about.get("metric", ""), 60),
        "rows": rows_said(
            [{"split": text(about.get("split", ""), 60), "n": data["full"].get("n")}]
        ),
        "relative": False,
        "ratio": number(about.get("ratio")),
        "over": text(about["over"], 60) if about.get("over") else None,
        "full": bounds(data["full"]),
        "series": [{"name": name, "points": points} for name, points in series.items()],
        "command": command_in(data),
    }


def _repair(about: Mapping[str, Any]) -> str:
    names = [name for name in text(about.get("repair") or "", 200).split(", ") if name]
    return ", ".join(done_words(names))
