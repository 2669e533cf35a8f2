from __future__ import annotations

from typing import Any

import pytest

from headcount.studies.statement import Found, sentence_of, unmet_sentence

DATA: dict[str, Any] = {
    "model": "/models/MiniLM", "task": "mrpc", "metric": "f1", "heads": 72, "kept": 41,
    "full": 0.861, "score": 0.858, "difference": {"value": -0.003, "low": -0.012, "high": 0.006},
    "bound": "1 %", "chance": 0.88, "higher_is_better": True, "by": "loss",
    "speedup": {"value": 1.34, "low": 1.29, "high": 1.38},
    "parameters": {"before": 22_713_216, "after": 20_100_000},
}  # fmt: skip


def test_the_sentence_says_it_all() -> None:
    assert sentence_of(DATA) == (
        "MiniLM needs 41 of its 72 heads on mrpc: f1 0.861 → 0.858 (−0.003 [−0.012, +0.006]), the "
        "loss is within 1 % with a chance of 88 %; measured 1.34× [1.29, 1.38] faster, 22.7 M → "
        "20.1 M parameters."
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"speedup": None}, "its time was not measured"),
        ({"speedup": {"value": 1.02, "low": 0.9, "high": 1.2}}, "not told apart from all heads"),
        ({"speedup": {"value": 0.8, "low": 0.7, "high": 0.9}}, "0.80× [0.70, 0.90] its speed, slo"),
        ({"higher_is_better": False, "metric": "perplexity"}, "the rise is within 1 %"),
        ({"chance": 1.0}, "a chance of over 99 %"),
        ({"chance": 0.001}, "a chance of under 1 %"),
        ({"by": "knee", "chance": None, "bound": None}, "the knee of its curve): f1"),
        ({"by": "budget", "bound": "0.8 × the latency", "chance": None}, "mrpc within 0.8 × the"),
        ({"parameters": {"before": 831_874, "after": 617_634}}, "831,874 → 617,634 parameters"),
        ({"cache": {"before": 9216, "after": 4608}}, "9,216 → 4,608 bytes of cache a token"),
        ({"full": 30.123, "score": 30.5}, "30.12 → 30.50"),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_what_else_it_can_say(change: Any, said: str) -> None:
    assert said in sentence_of(DATA | change)


def test_how_close_it_came() -> None:
    near = {"method": "surgeon", "kept": 71, "chance": 0.31,
            "difference": {"value": -0.004, "low": -0.01, "high": 0.001}}  # fmt: skip
    assert unmet_sentence(DATA | {"nearest": near}) == (
        "No cut of MiniLM on mrpc is within 1 %: the nearest, 71 of its 72 heads by surgeon, "
        "changes f1 by −0.004 [−0.010, +0.001], within the bound with a chance of 31 %."
    )
    assert "nothing was tried" in unmet_sentence(DATA | {"nearest": None})


def test_found_shows_itself() -> None:
    found = Found(DATA | {"sentence": "It needs 41."})
    assert (str(found), found.met) == ("It needs 41.", False)
    assert repr(found) == "Found(41 of 72 heads on mrpc)"
    assert found.to_json()["kept"] == 41
