"""A search as people read it: the numbers of heads that were tried, and the selected model."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headcount.base.names import split_words
from headcount.base.text import minus
from headcount.runs.notes import rows_sentence
from headcount.studies.search.answer_card import answer_card
from headcount.views.tables.amounts import Row, interval, percent, scored
from headcount.views.tables.columns import Cells, table
from headcount.views.tables.grid import kept_grid

CHANGE = ("from all heads", "95 % interval", "probability")


def search_table(data: Row) -> Group:
    """Numbers of heads, most first; the heads that are kept, their held-out score, the sentence."""
    rows = [
        (
            size["method"],
            size["kept"],
            ", ".join(map(str, size["seeds"])),
            size["rows"],
            scored(size["score"]),
            *_change(size),
            _verdict(size, data),
        )
        for size in data["sizes"]
    ]
    seeds = "seeds" if any(len(size["seeds"]) > 1 for size in data["sizes"]) else "seed"
    columns = ["method", "heads", seeds, "rows", data["metric"], *CHANGE, ""]
    title = f"{data['task']}, {_set(data, 'selection', 'selection set')}"
    parts: list[RenderableType] = [table(columns, rows, title=title)]
    parts += [kept_grid(data["mask"])] if data.get("mask") else []
    parts += [Text("")]
    parts += [_held_out(data)] if data.get("score") is not None else []
    used = {use: rows for use, rows in data["rows"].items() if rows}
    title, *lines = answer_card(data).lines()
    parts += [Text(title, style="bold"), *map(Text, lines), Text("")]
    return Group(*parts, Text(data["sentence"]), Text(rows_sentence(used)))


def _set(data: Row, use: str, name: str) -> str:
    rows = data["rows"].get(use)
    return name if rows is None else split_words(rows["split"], rows["n"])


def _change(row: Row) -> tuple[str, str, str]:
    """The loss with its interval, and the probability that it is within the bound."""
    loss = row["difference"]
    value = "undefined" if loss["value"] is None else f"{loss['value']:+.4f}"
    return minus(value), minus(interval(loss)), percent(row["probability"])


def _held_out(data: Row) -> Table:
    """All heads, those that are kept, and as many at random, on the held-out set."""
    full, random = data["full"], data["random"]
    selected = f"{data['method']}, seed {data['seed']}"
    rows: list[Cells] = [
        ("all heads", data["heads"], scored(full), "", "", ""),
        (selected, data["kept"], scored(data["score"]), *_change(data)),
    ]
    if free := data.get("free"):
        name = f"{data['method']}, layers free to differ"
        loss = minus(f"{free['score']['score'] - full:+.4f}")
        rows.append((name, data["kept"], scored(free["score"]["score"]), loss, "", ""))
    if random:
        name, loss = "random", minus(f"{random['mean'] - full:+.4f}")
        if random["draws"] > 1:
            ends = f"{scored(random['worst'])} to {scored(random['best'])}"
            name += f", mean of {random['draws']}: {ends}"
        rows.append((name, data["kept"], scored(random["mean"]), loss, "", ""))
    columns = ["heads by", "heads", data["metric"], *CHANGE]
    return table(columns, rows, title=f"{data['task']}, {_set(data, 'held_out', 'held-out set')}")


def _verdict(size: Row, data: Row) -> str:
    if (size["method"], size["kept"]) == (data["method"], data["kept"]):
        return f"selected, seed {data['seed']}" if len(size["seeds"]) > 1 else "selected"
    if size["accepted"] is False and size["probability"] is None:
        return "unknown"
    return {True: "enough", False: "too few", None: ""}[size["accepted"]]
