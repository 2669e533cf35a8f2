"""A search as people read it: the sentence, and the cuts that were tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from headcount.names import split_words
from headcount.views.tables.amounts import interval, percent, scored
from headcount.views.tables.columns import table
from headcount.views.tables.grid import kept_grid


def search_table(data: Mapping[str, Any]) -> Group:
    """The cuts, most heads first, then the heads that stay, and the sentence."""
    rows = [
        (
            one["method"],
            one["kept"],
            one["seed"],
            one["rows"],
            scored(one["score"]),
            f"{one['difference']['value']:+.4f}".replace("-", "\N{MINUS SIGN}"),
            interval(one["difference"]).replace("-", "\N{MINUS SIGN}"),
            percent(one["chance"]),
            _verdict(one, data),
        )
        for one in data["tried"]
    ]
    columns = ["method", "heads", "seed", "rows", data["metric"], "from all heads"]
    columns += ["95 % interval", "chance", ""]
    title = f"{data['task']}, tried on the rows that choose"
    built = table(columns, rows, title=title)
    heads = [kept_grid(data["mask"])] if data.get("mask") else []
    return Group(built, *heads, Text(""), Text(data["sentence"]), Text(rows_said(data["rows"])))


def _verdict(one: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    answer = (one["method"], one["kept"], one["seed"])
    if answer == (data["method"], data["kept"], data["seed"]):
        return "the answer"
    return {True: "enough", False: "too few", None: ""}[one["accepted"]]


def rows_said(rows: Mapping[str, Any]) -> str:
    """Which rows did what, in one line.

    >>> rows_said({"decided": {"split": "train", "n": 512}, "scored": None})
    'Decided on 512 rows of train.'
    """
    used = {use: each for use, each in rows.items() if each}
    text = ", ".join(f"{use} on {split_words(x['split'], x['n'])}" for use, x in used.items())
    return f"{text[:1].upper()}{text[1:]}." if text else ""
