"""The answer as a card: what it says for every way a search can end."""

from __future__ import annotations

from typing import Any

import pytest

from headcount.studies.search.answer_card import answer_card

ANSWER: dict[str, Any] = {
    "model": "/models/mini", "task": "mrpc", "metric": "f1", "heads": 72, "kept": 39,
    "bound": "1 %", "by": "loss", "within_bound": True, "probability": 0.9999, "method": "surgeon",
    "full": 0.861, "score": 0.859, "difference": {"value": -0.002, "low": -0.01, "high": 0.006},
    "speedup": {"value": 1.18, "low": 1.15, "high": 1.22},
    "timing": {"shapes": [{"batch": 8, "reads": "53 tokens", "bound": 1.2}]},
    "parameters": {"before": 22_700_000, "after": 20_100_000},
    "rows": {"held_out": {"split": "dev:held-out:0.5:0", "n": 204}},
    "random": {"mean": 0.845}, "command": "headcount search mini",
}  # fmt: skip


def test_an_answer_is_a_line_three_figures_and_small_print() -> None:
    card = answer_card(ANSWER)
    assert (card.title, card.subject) == ("39 of 72 heads are enough", "mini on mrpc")
    assert [(tile.label, tile.value, tile.detail) for tile in card.tiles] == [
        ("f1", "0.861 → 0.859", "−0.002 [−0.010, +0.006]"),
        ("speed at 8 × 53 tokens", "1.18 ×", "[1.15, 1.22], FLOPs allow 1.20 ×"),
        ("parameters", "22.7 → 20.1 M", "−11 %"),
    ]
    assert card.small_print == (
        "half of dev (held-out set, 204 rows); within 1 % with a probability of over 99 %; "
        "heads by surgeon; as many at random: 0.845"
    )
    assert card.lines()[0] == card.title
    assert len(card.lines()) == 5


def test_the_command_keeps_no_path_of_the_machine() -> None:
    command = "headcount search /home/me/mini --data /home/me/glue --out answer"
    shown = answer_card(ANSWER | {"command": command}).command
    assert shown == "headcount search mini --data glue --out answer"
    assert answer_card(ANSWER | {"command": None}).command is None


def test_nothing_has_no_sign() -> None:
    lost = {"value": -0.0002, "low": -0.01, "high": 0.0004}
    assert answer_card(ANSWER | {"difference": lost}).tiles[0].detail == "0.000 [−0.010, 0.000]"


@pytest.mark.parametrize(
    ("change", "title"),
    [
        ({"within_bound": False}, "39 of 72 heads are not enough"),
        ({"by": "budget", "bound": "0.8x"}, "39 of 72 heads fit the budget"),
        ({"by": "knee", "bound": None}, "The knee is at 39 of 72 heads"),
        ({"difference": None, "kept": 72}, "No pruned model is within 1 %"),
    ],
)
def test_it_claims_no_more_than_the_search(change: dict[str, Any], title: str) -> None:
    card = answer_card(ANSWER | change)
    assert card.title == title
    assert len(card.tiles) == (0 if change.get("difference", 1) is None else 3)


def test_what_was_not_measured_is_said_and_the_cache_has_its_bytes() -> None:
    cache = {"before": 92_160, "after": 61_440}
    lost = {"value": 0.1, "low": None, "high": None}
    more = {"speedup": None, "cache": cache, "full": 30.1, "score": 31.4, "difference": lost}
    score, speed, size = answer_card(ANSWER | more).tiles
    assert (score.value, score.detail) == ("30.10 → 31.40", "+0.10")
    assert speed.value == "not measured"
    assert size.detail == "−11 %; cache 92,160 → 61,440 bytes a token, −33 %"


def test_a_notebook_shows_text_of_files_as_text() -> None:
    html = answer_card(ANSWER | {"task": "<b>x</b>", "metric": "<i>"})._repr_html_()
    assert "<b>x</b>" not in html
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "&lt;i&gt;" in html
