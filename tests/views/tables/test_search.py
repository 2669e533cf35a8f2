from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headcount.heads import Layout, Mask
from headcount.views.tables.search import rows_said, search_table

CUT = {"method": "surgeon", "seed": 0, "rows": 99, "score": 0.79, "chance": 0.61,
       "difference": {"value": -0.01, "low": -0.03, "high": 0.02}}  # fmt: skip
DATA: dict[str, Any] = {
    "task": "pets", "metric": "f1", "method": "surgeon", "kept": 24, "seed": 0,
    "sentence": "tiny needs 24 of its 48 heads.",
    "rows": {"decided": {"split": "train", "n": 512}, "scored": {"split": "dev", "n": 1000}},
    "tried": [
        CUT | {"kept": 36, "accepted": True}, CUT | {"kept": 24, "accepted": True},
        CUT | {"kept": 12, "accepted": False}, CUT | {"kept": 6, "accepted": None, "chance": None},
    ],
}  # fmt: skip


def test_every_cut_has_a_line_and_the_sentence_comes_last(shown: Callable[[Any], str]) -> None:
    lines = [line.split() for line in shown(search_table(DATA)).splitlines()]
    cuts = [line for line in lines if line[:1] == ["surgeon"]]
    assert [line[1] for line in cuts] == ["36", "24", "12", "6"]
    assert [" ".join(line[-2:]) for line in cuts[:3]] == ["% enough", "the answer", "too few"]
    assert "−0.0100" in cuts[0]
    assert "[−0.0300," in cuts[0]
    assert " ".join(lines[-2]) == "tiny needs 24 of its 48 heads."
    assert " ".join(lines[-1]) == "Decided on 512 rows of train, scored on 1,000 rows of dev."


def test_the_heads_that_stay_are_drawn(shown: Callable[[Any], str]) -> None:
    mask = Mask.parse("21", Layout.of(encoder=[2, 2]))
    lines = shown(search_table(DATA | {"mask": mask.to_json()})).splitlines()
    start = lines.index("Heads that stay, by layer")
    assert [line.count("#") for line in lines[start + 1 : start + 3]] == [2, 1]


def test_rows_that_were_not_used_are_left_out() -> None:
    assert rows_said({"repaired": None, "scored": {"split": "dev", "n": 5}}) == (
        "Scored on 5 rows of dev."
    )
    assert rows_said({}) == ""
