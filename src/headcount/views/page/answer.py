"""The answer in one sentence: a search's own, or the best statement that the records allow."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from headcount.base.errors import HeadcountError
from headcount.base.names import split_words
from headcount.views.page.commands import LONGEST, command_in
from headcount.views.page.reading import bounds, careful, number, text
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput, ReportItem

NOT_HELD_OUT = (
    "The cut was picked after its score was seen, on the same rows; headcount search tests its "
    "answer on rows it did not choose by."
)


def answer(
    subject: PageSubject,
    found: ReportInput,
    made: Sequence[Mapping[str, Any]],
    full: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The sentence, what it stands on, and which cut it is."""
    for item in subject.of("search"):
        with careful(found, item):
            return _searched(item, subject, made)
    return _smallest(subject, made, full)


def _searched(
    item: ReportItem, subject: PageSubject, made: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    data = item.data
    sentence = data.get("sentence") or (
        f"{data['heads'] - data['kept']} of {data['heads']} heads can go."
    )
    wanted = {str(row.get("id")) for row in data.get("tried", []) if row.get("accepted")}
    final = [each for each in subject.of("prune") if each.folder == item.folder / "model"]
    wanted = {str(each.data.get("id")) for each in final} or wanted
    places = [
        place
        for place, cut in enumerate(made)
        if cut.get("id") in wanted and cut["kept"] == data["kept"]
    ]
    before, after = (number((data.get("parameters") or {}).get(k)) for k in ("before", "after"))
    return {
        "sentence": text(sentence, 600),
        "from": "search",
        "holds": data.get("holds"),
        "bound": _bound(data),
        "asked": None if data.get("bound") is None else text(data["bound"], 40),
        "kept": number(data.get("kept")),
        "score": bounds(data.get("score")) or number(data.get("score")),
        "difference": bounds(data.get("difference")),
        "speedup": bounds(data.get("speedup")),
        "chance": number(data.get("chance")),
        "parameters": [before, after] if before and after else None,
        "cut": places[0] if places else None,
        "note": _rows(data.get("rows")),
        "command": command_in(data),
        "seed": number(data.get("seed")),
        "random": _random(data.get("random")),
        "tried": [
            _tried(row)
            for row in data.get("sizes") or data.get("tried", [])
            if isinstance(row, Mapping)
        ],
    }


def _tried(row: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: number(row.get(name)) for name in ("kept", "rows", "chance")}
    seeds = row.get("seeds", [row.get("seed")])  # older searches have a row a seed
    return {"method": text(row.get("method", ""), 60), **plain,
            "seeds": [number(seed) for seed in seeds],
            "difference": bounds(row.get("difference")),
            "accepted": bool(row.get("accepted"))}  # fmt: skip


def _random(drawn: Any) -> dict[str, Any] | None:
    """As many heads at random, on the same rows as the answer."""
    if not isinstance(drawn, Mapping):
        return None
    return {name: number(drawn.get(name)) for name in ("mean", "worst", "best", "draws")}


def _bound(data: Mapping[str, Any]) -> float | None:
    """The loss that is allowed, in the unit of the score; None for another kind of bound."""
    bound, full = data.get("bound"), data.get("full")
    if data.get("by", "loss") != "loss" or bound is None:
        return None
    said = str(bound).replace(" ", "").replace("−", "-")
    if not said.endswith("%"):
        return abs(float(said))
    whole = number(full) if not isinstance(full, Mapping) else (bounds(full) or {}).get("value")
    return None if whole is None else abs(float(said[:-1]) / 100 * whole)


def _rows(rows: Any) -> str:
    """Which rows chose and which the statement is about."""
    if not isinstance(rows, Mapping) or not rows.get("chosen"):
        return ""
    if not rows.get("scored"):  # no cut was taken, and none was held out for
        return f"Chosen on {text(split_words(rows['chosen']['split'], rows['chosen']['n']), 80)}."
    chosen, scored = (
        text(split_words(rows[use]["split"], rows[use]["n"]), 80) for use in ("chosen", "scored")
    )
    return f"Chosen on {chosen}; the statement is about {scored}, which chose nothing."


def _smallest(
    subject: PageSubject, made: Sequence[Mapping[str, Any]], full: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The smallest cut whose difference from all heads is not told apart from none."""
    heads = len(subject.layout)
    plain = {"from": "records", "cut": None, "note": "", "kept": None, "difference": None,
             "tried": [], "bound": None, "speedup": None}  # fmt: skip
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, cut in enumerate(made):
        groups.setdefault((cut["study"], cut["method"], cut["kept"]), []).append(place)
    held = [own for own in groups.values() if all(_holds(made[at], heads) for at in own)]
    if held:
        best = min(held, key=lambda own: (made[own[0]]["kept"], -_mean_loss(made, own)))
        place = best[0]
        cut = made[place]
        lost = cut["difference"]
        said = (
            f"{heads - cut['kept']} of {heads} heads can go, as far as these rows tell: by "
            f"{cut['method']}, "
            f"{cut['metric']} is {cut['score']['value']:.3f} instead of "
            f"{(full or {}).get('value') or cut['score']['value'] - lost['value']:.3f}, a "
            f"difference of {signed(lost['value'])} [{signed(lost['low'])}, {signed(lost['high'])}]"
            + (f" on {cut['n']:,} rows." if cut.get("n") else ".")
        )
        return plain | {"sentence": said, "cut": place, "kept": cut["kept"], "difference": lost,
                        "score": cut["score"], "note": NOT_HELD_OUT}  # fmt: skip
    if any(cut.get("difference") for cut in made):
        said = f"No cut that was tried keeps the score of all {heads} heads."
        return plain | {"sentence": said}
    of = f" on {subject.task}" if subject.task else ""
    said = f"{subject.model} has {heads} heads; no cut of them has been scored{of} yet."
    return plain | {"sentence": said, "command": _to_ask(subject)}


def _to_ask(subject: PageSubject) -> str | None:
    """The search that would answer, on the model and the rows that its records name."""
    runs = [item.data.get("run") for item in subject.items if isinstance(item.data, Mapping)]
    run = next((run for run in runs if isinstance(run, Mapping) and run.get("task")), None)
    if run is None or not isinstance(run.get("model"), str):
        return None
    words = ["headcount", "search", run["model"], "--task", str(run["task"])]
    source = run.get("source")
    for name, value in (source if isinstance(source, Mapping) else {}).items():
        values = value if isinstance(value, list) else [value]
        if value is not None and values:
            words += [f"--{name}", *map(str, values)]
    return text(shlex.join([*words, "--max-drop", "1%", "--out", "search"]), LONGEST)


def _mean_loss(made: Sequence[Mapping[str, Any]], own: Sequence[int]) -> float:
    """The mean difference of cuts, for the better upwards."""
    sign = 1 if higher_is_better(made[own[0]]["metric"]) else -1
    return sign * sum(made[place]["difference"]["value"] for place in own) / len(own)


def _holds(cut: Mapping[str, Any], heads: int) -> bool:
    """Whether a cut's difference has zero in its interval, or is for the better."""
    lost = cut.get("difference")
    if cut["kept"] >= heads or not lost or any(value is None for value in lost.values()):
        return False
    if (cut["score"] or {}).get("value") is None:  # a damaged record
        return False
    better = lost["low"] > 0 if higher_is_better(cut["metric"]) else lost["high"] < 0
    return better or lost["low"] <= 0 <= lost["high"]


def higher_is_better(metric: str) -> bool:
    """Whether more of a metric is better; of an unknown one, it is."""
    from headcount.tasks.metrics import get_metric

    try:
        return get_metric(metric).higher_is_better
    except HeadcountError:  # a metric of a newer version, or of a plugin
        return True


def signed(value: float) -> str:
    """A difference with its sign, typographic.

    >>> signed(-0.0213), signed(0.001)
    ('−0.021', '+0.001')
    """
    return f"{value:+.3f}".replace("-", "−")
