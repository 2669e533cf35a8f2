"""The cuts of a subject: every record of a prune, in the orders that the slider replays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headcount.heads import Layout, Mask
from headcount.views.page.answer import higher_is_better
from headcount.views.page.axes import axes_of, label_of
from headcount.views.page.commands import command_in
from headcount.views.page.reading import bits, bounds, careful, number, text
from headcount.views.page.rows import rows_said, set_of
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem


def cuts(subject: PageSubject, found: ReportInput) -> list[dict[str, Any]]:
    """Every cut of the subject's heads, from many heads to few."""
    made: list[dict[str, Any]] = []
    differing = axes_of(subject.of("prune"), {item.folder.parent for item in found.of("file")})
    searches = {item.folder for item in subject.of("search")}
    for item in subject.of("prune"):
        with careful(found, item):
            cut = _cut(item, subject.layout, differing.get(item.path, ""))
            used = set_of(item, cut["split"], searches)
            searched = item.folder.parent in searches and item.folder.name == "model"
            cut |= {"set": used, "answers": item.folder.parent.name if searched else None}
            made.append(cut | {"rows": rows_said([cut]) if cut["score"] else ""})
    scored = {item.folder for item in subject.of("prune")}
    for item in subject.of("mask"):
        if item.folder not in scored:
            with careful(found, item):
                mask = Mask.from_json(item.data, subject.layout)
                made.append(_bare(mask, method="mask", study=None) | {"file": item.folder.name})
    return sorted(made, key=lambda cut: -cut["kept"])


def _bare(mask: Mask, *, method: str, study: str | None) -> dict[str, Any]:
    return {"method": method, "seed": 0, "kept": len(mask), "mask": bits(mask), "study": study,
            "pattern": mask.pattern, "score": None, "answers": None, "rows": ""}  # fmt: skip


def _cut(item: ReportItem, layout: Layout, axes: str = "") -> dict[str, Any]:
    record = item.data
    mask = Mask.from_json(record["mask"], layout)
    study = item.study
    scores = record.get("scores") or {}
    after = scores.get("after") or {}
    random = scores.get("random") or {}
    method = label_of(record) + axes
    return _bare(mask, method=method, study=None if study is None else study.name) | {
        "id": text(record.get("id", ""), 40),
        "seed": int(record.get("seed") or 0),
        "ratio": number(record.get("ratio")),
        "score": bounds(after),
        "before": bounds(scores.get("before")),
        "n": number(after.get("n")),
        "metric": text(scores.get("metric", ""), 60),
        "split": text(scores.get("split", ""), 60),
        "difference": bounds(scores.get("difference")) or _change(after, scores.get("before")),
        "random": {name: number(random.get(name)) for name in ("mean", "worst", "best", "draws")}
        if random
        else None,
        "parameters": _parameters(record),
        "steps": number((record.get("budget") or {}).get("steps")),
        "rows_said": text(record.get("rows_said", "")),
        "notes": [text(note) for note in record.get("notes", [])],
        "command": command_in(record),
        "seconds": number(record.get("seconds")),
    }


def _change(after: Any, before: Any) -> dict[str, float | None] | None:
    """The difference from all heads where a record has none of its own: without an interval."""
    new, old = ((bounds(each) or {}).get("value") for each in (after, before))
    if new is None or old is None:
        return None
    return {"value": new - old, "low": None, "high": None}


def _parameters(record: Mapping[str, Any]) -> list[float | None] | None:
    counts = record.get("parameters")
    return [number(counts["before"]), number(counts["after"])] if counts else None


def orders(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cuts by one method, repair and seed in one study, at growing ratios: what can be replayed.

    A cut of its own joins a study that asks the same and scores all heads alike, so on the same
    rows. What a search found is beside its order, not in it: it was scored on the held-out set.
    The order with most cuts comes first; of one method, the first seed.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, cut in enumerate(made):
        groups.setdefault((cut["study"], cut["method"], cut["seed"]), []).append(place)
    held: dict[tuple[Any, ...], list[int]] = {}
    for (study, method, seed), own in list(groups.items()):
        if study is not None:
            continue
        wider = [key for key in groups if key[1:] == (method, seed) and key[0] is not None]
        for place in own.copy():
            answered = [key for key in wider if key[0] == made[place]["answers"]]
            joined = [key for key in wider if _alike(made[place], made[groups[key][-1]])]
            for key in answered:
                held.setdefault(key, []).append(place)
            for key in joined if not answered else []:
                groups[key] = [place, *groups[key]]
            if answered or joined:
                own.remove(place)
        if not own:
            del groups[study, method, seed]
    listed = [
        {"study": study, "method": method, "seed": seed, "cuts": own,
         "held": held.get((study, method, seed), []),
         "rows": rows_said(made[place] for place in own if made[place]["score"])}
        for (study, method, seed), own in groups.items()
    ]  # fmt: skip
    return sorted(listed, key=lambda order: (*_worth(order, made), order["seed"]))


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two cuts are scored on the same rows, and from the same score of all heads."""

    def rows(cut: Mapping[str, Any]) -> tuple[Any, ...]:
        return cut.get("split"), cut.get("n"), (cut.get("before") or {}).get("value")

    return not one["score"] or rows(one) == rows(other)


def _worth(order: Mapping[str, Any], made: list[dict[str, Any]]) -> tuple[int, float]:
    """What to sort orders by: many cuts come first; among these, the smaller mean loss."""
    own = [made[place] for place in order["cuts"]]
    lost = [
        cut["difference"]["value"] * (-1 if higher_is_better(cut["metric"]) else 1)
        for cut in own
        if cut.get("difference") and cut["difference"]["value"] is not None
    ]
    sizes = min(len({cut["kept"] for cut in own}), 4)
    return -sizes, sum(lost) / len(lost) if lost else math.inf


def full_of(subject: PageSubject) -> dict[str, Any] | None:
    """The model with all its heads, scored."""
    for item in subject.of("study"):
        if isinstance(full := item.data.get("full"), dict):
            return _full(full)
    for item in subject.of("prune"):
        scores = item.data.get("scores")
        if isinstance(scores, dict) and isinstance(before := scores.get("before"), dict):
            return _full(before)
    for item in subject.of("search"):
        if number(full := item.data.get("full")) is not None:
            low, high = item.data.get("full_interval") or (None, None)
            return _full({**item.data, "score": full, "low": low, "high": high})
    return None


def _full(scores: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: text(scores.get(name) or "", 60) for name in ("metric", "split")}
    full = {**(bounds(scores) or {}), **named, "n": number(scores.get("n"))}
    return full | {"rows": rows_said([full])}


def wholes(made: list[dict[str, Any]], full: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """All heads, once for every set of rows that they were scored on."""
    scored = [
        cut["before"] | {part: cut[part] for part in ("metric", "split", "n", "rows")}
        for cut in made
        if cut.get("before")
    ]
    alone = [dict(full)] if full and full.get("value") is not None else []
    distinct = {(one["rows"], one["value"]): one for one in [*scored, *alone]}
    return list(distinct.values())


def size_of(made: list[dict[str, Any]], heads: int) -> dict[str, float] | None:
    """Parameters of the whole model and of one head, where all cuts agree about them."""
    known = [(cut["parameters"], heads - cut["kept"]) for cut in made if cut.get("parameters")]
    each = [(before - after) / gone for (before, after), gone in known if gone]
    if not each or max(each) - min(each) > 0.005 * max(each):
        return None
    return {"before": known[0][0][0], "head": sum(each) / len(each)}
