"""Runs without a summary of their own: of a search, a study file, or a study that was stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headcount.statistics import compare_pairs, interval
from headcount.tasks.metrics import METRICS, over_seeds, step_of
from headcount.views.page.answer import higher_is_better
from headcount.views.page.reading import bounds, number, text
from headcount.views.page.rows import rows_said, several

Cut = Mapping[str, Any]
Place = tuple[str, int]
"""A method, and how many heads it kept."""


def sum_up(
    name: str, own: Sequence[Cut], heads: int, *, kind: str, command: str | None
) -> dict[str, Any]:
    """Means and intervals over seeds; where there are random cuts, methods tested against them.

    The rows of a search's runs differ, so these are not tested, and what is shown of them is the
    difference from all heads on the same rows. So it is of any runs on several sets of rows.
    """
    relative = kind == "search" or several(own)
    shown = "difference" if relative else "score"
    groups: dict[Place, list[Cut]] = {}
    for cut in own:
        if (cut[shown] or {}).get("value") is not None:
            groups.setdefault((cut["method"], cut["kept"]), []).append(cut)
    tests = {} if relative else _tests(groups, heads)
    series: dict[str, list[dict[str, Any]]] = {}
    for place, same in sorted(groups.items(), key=lambda group: -group[0][1]):
        point = _point(same, heads, shown) | {
            "random": tested(tests.get((place, "random"))),
            "all": tested(tests.get((place, "all-heads"))),
        }
        series.setdefault(place[0], []).append(point)
    first = own[0] if own else {}
    by_rows = sorted(own, key=lambda cut: -(cut.get("n") or 0))
    whole = {cut["before"]["value"]: cut["before"] for cut in by_rows if cut.get("before")}
    most = next(iter(whole.values()), None)
    return {
        "name": name,
        "kind": kind,
        "repair": "",
        "metric": first.get("metric", ""),
        "rows": rows_said(own),
        "relative": relative,
        "full": most if relative or len(whole) == 1 else None,
        "series": [{"name": method, "points": points} for method, points in series.items()],
        "command": command,
    }


def _point(same: Sequence[Cut], heads: int, shown: str) -> dict[str, Any]:
    """The mean of scores, or of differences from all heads."""
    mean, low, high = _over_seeds(same, shown)
    if len(same) == 1:
        low, high = same[0][shown]["low"], same[0][shown]["high"]
    kept = same[0]["kept"]
    return {"kept": kept, "removed": 1 - kept / heads, "value": mean, "low": number(low),
            "high": number(high), "seeds": len(same), "rows": rows_said(same),
            "difference": same[0]["difference"] if len(same) == 1 else None}  # fmt: skip


def _over_seeds(same: Sequence[Cut], shown: str) -> tuple[float, float, float]:
    """Mean and interval of cuts that differ by their seed."""
    values = [cut[shown]["value"] for cut in same]
    if not _known(same[0]):
        return interval(values)
    rows, differences = same[0].get("n"), shown == "difference"
    return over_seeds(same[0]["metric"], values, rows, differences=differences)


def _known(cut: Cut) -> bool:
    """Whether the metric is one of ours, and not of a newer version or a plugin."""
    return cut.get("metric") in METRICS


def _tests(groups: Mapping[Place, Sequence[Cut]], heads: int) -> dict[tuple[Place, str], Any]:
    """(cuts, what they are held against) -> their differences seed by seed."""
    scores = {
        place: {cut["seed"]: cut["score"]["value"] for cut in own} for place, own in groups.items()
    }
    found: dict[tuple[Place, str], Any] = {}
    for against in ("random", "all-heads"):
        pairs = [
            (place, other)
            for place in scores
            for other in [_reference(place, against, heads)]
            if other in scores and other != place
        ]
        if pairs:
            first = next(iter(groups.values()))[0]
            better = higher_is_better(first["metric"])
            value = first["score"]["value"]
            step = step_of(first["metric"], first.get("n"), value) if _known(first) else 0.0
            rows = compare_pairs(scores, pairs, higher_is_better=better, step=step)
            found |= {(place, against): row for (place, _), row in rows.items()}
    return found


def _reference(place: Place, against: str, heads: int) -> Place:
    """The random cuts of the same size and repair, or all heads with the same repair."""
    _, *rest = place[0].split(", ")
    return ", ".join([against, *rest]), heads if against == "all-heads" else place[1]


def tested(found: Any) -> dict[str, Any] | None:
    """A paired difference with its p, before and after Holm's correction, and what it says."""
    if not isinstance(found, Mapping):
        return None
    return {
        **(bounds(found) or {}),
        "p": number(found.get("p")),
        "corrected": number(found.get("p_corrected")),
        "comparisons": number(found.get("comparisons")),
        "verdict": text(found.get("verdict", ""), 20),
        "needed": number(found.get("seeds_needed")),
        "seeds": number(found.get("seeds")),
    }
