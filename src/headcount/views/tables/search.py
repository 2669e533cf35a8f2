"""A search as people read it: numbers of heads that were tried, the answer, and the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headcount.base.names import split_words
from headcount.views.tables.amounts import interval, percent, scored
from headcount.views.tables.columns import table
from headcount.views.tables.grid import kept_grid

CHANGE = ("from all heads", "95 % interval", "chance")


def search_table(data: Mapping[str, Any]) -> Group:
    """Numbers of heads, most first; the heads that stay, their held-out score, and the sentence."""
    rows = [
        (
            one["method"],
            one["kept"],
            ", ".join(map(str, one["seeds"])),
            one["rows"],
            scored(one["score"]),
            *_change(one),
            _verdict(one, data),
        )
        for one in data["sizes"]
    ]
    many = any(len(one["seeds"]) > 1 for one in data["sizes"])
    columns = ["method", "heads", "seeds" if many else "seed", "rows", data["metric"], *CHANGE, ""]
    title = f"{data['task']}, tried on {_set(data, 'chosen')}"
    parts: list[RenderableType] = [table(columns, rows, title=title)]
    parts += [kept_grid(data["mask"])] if data.get("mask") else []
    parts += [Text("")]
    parts += [_held_out(data)] if data.get("score") is not None else []
    parts += [Text(data["sentence"]), Text(rows_said(data["rows"]))]
    return Group(*parts)


def _set(data: Mapping[str, Any], use: str) -> str:
    rows = data["rows"].get(use)
    return "rows that chose" if rows is None else split_words(rows["split"], rows["n"])


def _change(one: Mapping[str, Any]) -> tuple[str, str, str]:
    """What was lost, with its interval, and the chance that it is within the bound."""
    lost = one["difference"]
    value = "undefined" if lost["value"] is None else f"{lost['value']:+.4f}"
    ends = interval(lost)
    return _typed(value), _typed(ends), percent(one["chance"])


def _typed(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def _held_out(data: Mapping[str, Any]) -> Table:
    """All heads, those that stay, and as many at random, on rows that chose nothing."""
    full, drawn = data["full"], data["random"]
    rows: list[tuple[Any, ...]] = [
        ("all heads", data["heads"], scored(full), "", "", ""),
        (f"{data['method']}, seed {data['seed']}", data["kept"], scored(data["score"]),
         *_change(data)),
    ]  # fmt: skip
    if drawn:
        name, lost = "random", _typed(f"{drawn['mean'] - full:+.4f}")
        if drawn["draws"] > 1:
            ends = f"{scored(drawn['worst'])} to {scored(drawn['best'])}"
            name += f", mean of {drawn['draws']}: {ends}"
        rows.append((name, data["kept"], scored(drawn["mean"]), lost, "", ""))
    columns = ["heads by", "heads", data["metric"], *CHANGE]
    return table(columns, rows, title=f"{data['task']}, {_set(data, 'scored')}")


def _verdict(one: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    if (one["method"], one["kept"]) == (data["method"], data["kept"]):
        seed = f", seed {data['seed']}" if len(one["seeds"]) > 1 else ""
        return f"the answer{seed}"
    if one["accepted"] is False and one["chance"] is None:
        return "unknown"
    return {True: "enough", False: "too few", None: ""}[one["accepted"]]


def rows_said(rows: Mapping[str, Any]) -> str:
    """Which rows did what, in one line.

    >>> rows_said({"decided": {"split": "train", "n": 512}, "scored": None})
    'Decided on 512 rows of train.'
    """
    used = {use: each for use, each in rows.items() if each}
    text = ", ".join(f"{use} on {split_words(x['split'], x['n'])}" for use, x in used.items())
    return f"{text[:1].upper()}{text[1:]}." if text else ""
