"""Everything of the page as one plain value."""

from __future__ import annotations

from typing import Any

from headcount import __version__
from headcount.base.names import split_words
from headcount.heads import Layout
from headcount.views.page.answer import answer, higher_is_better
from headcount.views.page.changes import gates, transfers
from headcount.views.page.commands import command_in
from headcount.views.page.cost import timings
from headcount.views.page.cuts import cuts, full_of, orders, size_of, wholes
from headcount.views.page.matrices import agreements, matrices
from headcount.views.page.quantities import quantities
from headcount.views.page.reading import bounds, careful, number, short_name, text
from headcount.views.page.rows import rows_said
from headcount.views.page.sentences import roles, sentences
from headcount.views.page.studies import studies
from headcount.views.page.subjects import PageSubject, subjects
from headcount.views.page.walk import ReportInput


def gather(found: ReportInput) -> dict[str, Any]:
    """The data of the page: a part for each subject, and what was left out."""
    made = [_subject(subject, found) for subject in subjects(found)]
    skipped = [[text(name), text(why)] for name, why in dict.fromkeys(found.skipped)]
    return {"version": __version__, "subjects": made, "skipped": skipped}


def _subject(subject: PageSubject, found: ReportInput) -> dict[str, Any]:
    listed = cuts(subject, found)
    full = full_of(subject)
    made = {
        "name": subject.name,
        "model": subject.model,
        "task": subject.task,
        "layout": _layout(subject.layout),
        "full": full,
        "wholes": wholes(listed, full),
        "higher": higher_is_better((full or {}).get("metric") or ""),
        "answer": answer(subject, found, listed, None),  # a cut's difference is of its own rows
        "quantities": quantities(subject, found, listed),
        "roles": roles(subject, found),
        "cuts": listed,
        "orders": orders(listed),
        "size": size_of(listed, len(subject.layout)),
        "studies": studies(subject, found, listed),
        "others": _others(subject, found),
        "matrices": matrices(subject, found),
        "agreements": agreements(subject, found),
        "transfers": transfers(subject, found),
        "gates": gates(subject, found),
        "sentences": sentences(subject, found),
        "bench": timings(subject, found),
    }
    for scored in (*listed, *made["wholes"], *([full] if full else [])):
        # the name of a half was needed to tell sets of rows apart, and is not for people
        scored["split"] = text(split_words(scored.get("split") or ""), 60)
    return made


def _layout(layout: Layout) -> list[dict[str, Any]]:
    """Stacks, each with the number every head had before any were removed."""
    numbers: dict[tuple[str, int], list[int]] = {}
    for head in layout:
        own = layout.original(head)
        numbers.setdefault((head.stack, head.layer), []).append(own.index)
    return [
        {
            "name": stack.name,
            "heads": list(stack.heads),
            "groups": list(stack.groups),
            "numbers": [numbers.get((stack.name, at), []) for at in range(len(stack.heads))],
        }
        for stack in layout.stacks
    ]


def _others(subject: PageSubject, found: ReportInput) -> list[dict[str, Any]]:
    """Scores that are not of cuts: trainings and evaluations."""
    listed: list[dict[str, Any]] = []
    for item in subject.of("train", "evaluate"):
        with careful(found, item):
            data = item.data
            scored = data.get("evaluation") if item.kind == "train" else data
            if scored and number(scored.get("score")) is not None:
                listed.append(
                    {
                        "what": item.kind,
                        "model": short_name(data.get("model") or "?"),
                        "score": bounds(scored),
                        "metric": text(scored.get("metric", ""), 60),
                        "split": text(split_words(scored.get("split", "")), 60),
                        "n": number(scored.get("n")),
                        "rows": rows_said([scored]),
                        "command": command_in(data),
                    }
                )
    return listed
