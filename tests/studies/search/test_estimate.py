from __future__ import annotations

from typing import Any

import pytest

from headcount.studies.search.estimate import SearchResult, sentence_of, unmet_sentence


def timed(speedup: Any, *, bound: float | None = 1.5, more: Any = ()) -> dict[str, Any]:
    """What a search says of time."""
    shape = {"batch": 8, "reads": "40 tokens", "speedup": speedup, "bound": bound}
    return {"speedup": speedup, "timing": {"shapes": [shape, *more]}}


ONE = {"batch": 1, "reads": "64 tokens", "bound": None,
       "speedup": {"value": 1.1, "low": 1.05, "high": 1.15}}  # fmt: skip
DATA: dict[str, Any] = {
    "model": "/models/MiniLM", "task": "mrpc", "metric": "f1", "heads": 72, "kept": 41,
    "full": 0.861, "score": 0.858, "difference": {"value": -0.003, "low": -0.012, "high": 0.006},
    "bound": "1 %", "probability": 0.88, "within_bound": True, "higher_is_better": True,
    "by": "loss",
    **timed({"value": 1.34, "low": 1.29, "high": 1.38}),
    "parameters": {"before": 22_713_216, "after": 20_100_000},
    "method": "surgeon", "seed": 2, "seeds": [0, 1, 2],
    "random": {"draws": 3, "mean": 0.811, "worst": 0.79, "best": 0.82},
}  # fmt: skip
BETTER = {"value": 0.05, "low": 0.02, "high": 0.08, "better": True}
LUCKY = {"value": 0.002, "low": -0.01, "high": 0.02, "better": False}
WORSE = {"value": -0.001, "low": -0.01, "high": 0.0, "better": False}
UNDEFINED = {"value": None, "low": None, "high": None, "better": False}


def test_the_sentence_says_it_all() -> None:
    assert sentence_of(DATA) == (
        "MiniLM needs 41 of its 72 heads on mrpc: f1 0.861 → 0.858 (−0.003 [−0.012, +0.006], "
        "−0.3 %), the loss is within 1 % with a probability of 88 %; heads by surgeon, seed 2, "
        "the best of 3; as many at random: 0.811 in the mean of 3 (0.790 to 0.820); 1.34 × as "
        "fast [1.29, 1.38] at 8 × 40 tokens (FLOPs allow 1.50 ×), 22.7 M → 20.1 M parameters."
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"speedup": None}, "its time was not measured"),
        (timed({"value": 1.02, "low": 0.9, "high": 1.2}), "(no measurable difference) at 8 × 40"),
        (timed({"value": 0.8, "low": 0.7, "high": 0.9}), "; 0.80 × as fast [0.70, 0.90] at 8"),
        (timed({"value": 1.3, "low": 1.2, "high": 1.4}, more=[ONE]),
         "(FLOPs allow 1.50 ×), 1.10 × as fast [1.05, 1.15] at 1 × 64 tokens, 22.7 M"),
        ({"higher_is_better": False, "metric": "perplexity"}, "the rise is within 1 %"),
        ({"probability": 1.0}, "a probability of over 99 %"),
        ({"probability": 0.001}, "a probability of under 1 %"),
        ({"by": "knee", "probability": None, "bound": None}, "the knee of its curve): f1"),
        ({"by": "budget", "bound": "0.8 × the latency", "probability": None}, "mrpc within 0.8 ×"),
        ({"parameters": {"before": 831_874, "after": 617_634}}, "831,874 → 617,634 parameters"),
        ({"cache": {"before": 9216, "after": 4608}},
         "9,216 → 4,608 bytes of cache a token (−50.0 %)"),
        ({"by": "budget", "bound": "0.8 × the latency", "probability": None},
         "MiniLM keeps 41 of its 72 heads"),
        ({"full": 0.0, "score": 0.1}, "0.000 → 0.100 (−0.003 [−0.012, +0.006]), the"),
        ({"seeds": [2]}, "; heads by surgeon, seed 2; as many"),
        ({"random": None}, "seed 2, the best of 3; 1.34"),
        ({"random": DATA["random"] | {"draws": 1}}, "; as many at random: 0.811; 1.34"),
        ({"full": 30.123, "score": 30.5}, "30.12 → 30.50"),
        ({"within_bound": False, "probability": 0.26}, "not within 1 % here, and on new rows wi"),
        ({"by": "budget", "bound": "0.8 × the latency", "probability": None, "within_bound": False,
          "amount": {"value": 0.405, "low": 0.395, "high": 0.42, "before": 0.5, "limit": 0.4}},
         "heads on mrpc at 0.810 × [0.790, 0.840], of which only the interval is within 0.8 × the"),
        ({"guess": {"value": 0.812, "full": BETTER, "score": BETTER}}, "heads on mrpc: f1 0.861"),
        ({"guess": {"value": 0.859, "full": LUCKY, "score": WORSE}},
         "on mrpc, where with all of them it is not measurably better than guessing (f1 0.859)"),
        ({"guess": {"value": 0.861, "full": WORSE, "score": WORSE}},
         "on mrpc, where with all of them it is not better than guessing (f1 0.861): f1"),
        ({"guess": {"value": 0.859, "full": BETTER, "score": WORSE}},
         "on mrpc, with which it is not better than guessing (f1 0.859): f1"),
        ({"guess": {"value": 0.0, "full": UNDEFINED, "score": None}}, "not better than guessing"),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_what_else_it_can_say(change: Any, said: str) -> None:
    assert said in sentence_of(DATA | change)


def test_how_close_it_came() -> None:
    near = {"method": "surgeon", "kept": 71, "probability": 0.31,
            "difference": {"value": -0.004, "low": -0.01, "high": 0.001}}  # fmt: skip
    assert unmet_sentence(DATA | {"nearest": near}) == (
        "No pruning of MiniLM on mrpc is within 1 %: the nearest, 71 of its 72 heads by surgeon, "
        "changes f1 by −0.004 [−0.010, +0.001], within the bound with a probability of 31 %."
    )
    guess = {"value": 0.861, "full": WORSE, "score": None}
    assert unmet_sentence(DATA | {"nearest": near, "guess": guess}).endswith(
        "a probability of 31 %, where with all of them it is not better than guessing (f1 0.861)."
    )
    assert "nothing was tried" in unmet_sentence(DATA | {"nearest": None})


def test_found_shows_itself() -> None:
    found = SearchResult(DATA | {"sentence": "It needs 41."})
    assert (str(found), found.met) == ("It needs 41.", False)
    assert repr(found) == "SearchResult(41 of 72 heads on mrpc)"
    assert found.to_json()["kept"] == 41


@pytest.mark.parametrize(("within_bound", "met"), [(True, True), (None, True), (False, False)])
def test_a_bound_is_met_where_the_estimate_is_within(within_bound: bool | None, met: bool) -> None:
    model: Any = object()
    assert SearchResult(DATA | {"within_bound": within_bound}, model).met is met
