from __future__ import annotations

from pathlib import Path

from rich.console import Console

from headcount.papers.claims import judge, read_claims
from headcount.papers.items import read_items
from headcount.papers.reproduce import reproduce
from headcount.papers.tables import (
    claims_table,
    counts_line,
    items_table,
    reproduced_page,
    summary,
)
from papers.filled import filled


def printed(what: object) -> str:
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(what)
    return captured.get()


def test_items_and_claims_are_lines(tmp_path: Path):
    assert "figure-20" in printed(items_table(read_items().values()))
    finished = filled(tmp_path, "tuned", "random")
    verdicts = [judge(read_claims()[code], finished, "pocket") for code in ("WL4", "WL5")]
    text = printed(claims_table(verdicts))
    assert "does not hold" in text
    assert "6 of 6 runs are done" in text  # of what WL5 needs, this plan has `tuned` only
    assert counts_line({"holds": 2, "not run": 1}) == "2 holds, 1 not run"


def test_an_item_shows_its_tables_claims_and_files(tmp_path: Path):
    filled(tmp_path, "tuned", "random", "frozen")
    done = reproduce("lay-off", "frozen", out=tmp_path, run=False)
    text = printed(reproduced_page(done))
    for word in ("Frozen layers", "In the paper", "LO7", "lay-off-frozen.csv"):
        assert word in text
    missing = reproduce("weak-link", "grid", out=tmp_path, run=False)
    assert "Not there yet: 0 of 10 runs are done." in printed(reproduced_page(missing))
    assert "0 of 10 runs" in printed(summary(missing))
