from __future__ import annotations

from typing import Any

import pytest

from headcount.views.search import save_figure, search_figure

TRIED = [
    {"method": method, "kept": kept, "seed": 0, "rows": 99, "score": 0.8 - 0.002 * (48 - kept),
     "difference": {"value": -0.01, "low": -0.03, "high": 0.02}, "chance": 0.6, "accepted": True}
    for method in ("surgeon", "random") for kept in (12, 24, 36)
]  # fmt: skip
DATA: dict[str, Any] = {
    "model": "runs/tiny", "task": "pets", "metric": "f1", "heads": 48, "kept": 24,
    "method": "surgeon", "chose": {"score": 0.8, "low": 0.75, "high": 0.85}, "least": 0.792,
    "bound": "1 %", "full": 0.7, "score": 0.69, "higher_is_better": True,
    "difference": {"value": -0.01, "low": -0.04, "high": 0.01},
    "random": {"scores": [0.6, 0.7]}, "tried": TRIED,
}  # fmt: skip


def labels(data: Any) -> list[str]:
    (axes,) = search_figure(data).axes
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_cuts_bound_answer_and_random_heads_are_drawn() -> None:
    (axes,) = search_figure(DATA).axes
    assert axes.get_xlabel() == "heads kept, of 48"
    assert axes.get_title(loc="left") == "tiny on pets"
    assert set(labels(DATA)) == {
        "all heads", "its 95 % interval", "1 % less", "surgeon, on rows that choose",
        "random, on rows that choose", "the answer, on other rows", "random heads",
    }  # fmt: skip
    dotted = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert [line.get_ydata()[0] for line in dotted] == [0.792]


def test_what_was_scored_on_other_rows_stands_by_its_difference() -> None:
    few = {**TRIED[0], "score": 0.95, "difference": {"value": 0.01, "low": 0.0, "high": 0.02}}
    (axes,) = search_figure(DATA | {"tried": [few]}).axes
    heights = {line.get_marker(): line.get_ydata() for line in axes.lines}
    assert heights["o"] == pytest.approx([0.81])  # 0.95 of easier rows, where all heads have 0.94
    assert heights["*"] == pytest.approx([0.79])  # 0.69 where all heads have 0.7
    assert heights["x"] == pytest.approx([0.7, 0.8])
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


@pytest.mark.parametrize(
    ("change", "missing"),
    [({"least": None}, "1 % less"), ({"score": None}, "the answer, on other rows"),
     ({"random": None}, "random heads")],
)  # fmt: skip
def test_what_is_not_there_is_not_drawn(change: dict[str, Any], missing: str) -> None:
    assert missing not in labels(DATA | change)


def test_a_rise_is_more() -> None:
    assert "1 % more" in labels(DATA | {"higher_is_better": False})


def test_nothing_tried_draws_nothing(tmp_path) -> None:
    save_figure(DATA | {"tried": []}, tmp_path)
    assert list(tmp_path.iterdir()) == []
    save_figure(DATA, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"search.png", "search.svg"}


def test_a_difference_without_an_interval_is_drawn_without_one() -> None:
    """Rows were too few for one: JSON has null."""
    none = {"value": -0.01, "low": None, "high": None, "no_interval": "it takes 60 rows"}
    tried = [{**one, "difference": none} for one in TRIED]
    chose = {"score": 0.8, "low": None, "high": None}
    data = DATA | {"difference": none, "tried": tried, "chose": chose}
    assert "its 95 % interval" not in labels(data)
    assert "the answer, on other rows" in labels(data)
