"""Records as rows, and methods tested against random cuts of the same table."""

from __future__ import annotations

from typing import Any

import pytest

from headcount.statistics import compare_pairs
from headcount.studies.gather import measures, summarize
from runs.whole import whole_record


def row(method: str, seed: int, score: float, ratio: float = 0.5) -> dict[str, Any]:
    return {
        "group": "cut", "method": method, "ratio": ratio, "seed": seed, "state": "done",
        "kind": "prune", "metric": "accuracy", "score": score, "low": 0.1, "high": 0.9, "n": 50,
    }  # fmt: skip


SCORES = {"random": [0.5, 0.52, 0.48], "surgeon": [0.8, 0.83, 0.79], "cluster": [0.5, 0.6, 0.45]}
ROWS = [
    row(method, seed, value) for method, own in SCORES.items() for seed, value in enumerate(own)
]


def test_methods_are_tested_against_random_with_all_comparisons_counted():
    lines = {line["method"]: line for line in summarize(ROWS, ["method", "ratio", "seed"])}
    groups = {method: dict(enumerate(own)) for method, own in SCORES.items()}
    pairs = [("surgeon", "random"), ("cluster", "random")]
    want = compare_pairs(groups, pairs, higher_is_better=True)
    for method in ("surgeon", "cluster"):
        assert lines[method]["than random"] == want[method, "random"]["verdict"]
        assert lines[method]["than random.p"] == pytest.approx(
            want[method, "random"]["p_corrected"]
        )
        assert lines[method]["than random.comparisons"] == 2
    assert lines["surgeon"]["than random"] == "better"
    assert lines["cluster"]["than random"] == "alike"
    assert lines["cluster"]["than random.seeds_needed"] == want["cluster", "random"]["seeds_needed"]
    assert "than random" not in lines["random"]


def test_means_over_seeds_stay_in_the_range_and_are_not_of_width_0() -> None:
    """Two seeds of 0.72 and 0.88 were 0.8 [-0.2165, 1.8165], two equal ones 0.8 [0.8, 0.8]."""
    far = [row("surgeon", 0, 0.72), row("surgeon", 1, 0.88)]
    (line,) = summarize(far, ["method", "ratio", "seed"])
    assert [line[name] for name in ("score", "score.low", "score.high")] == [0.8, 0.0, 1.0]
    same = [{**row("surgeon", seed, 0.8), "difference": -0.1} for seed in range(2)]
    (line,) = summarize(same, ["method", "ratio", "seed"])
    for name, mean in (("score", 0.8), ("difference", -0.1)):
        assert line[f"{name}.low"] == pytest.approx(mean - 0.0519, abs=1e-3)
        assert line[f"{name}.high"] == pytest.approx(mean + 0.0519, abs=1e-3)
    (line,) = summarize([{**each, "loss": 1.5} for each in same], ["method", "ratio", "seed"])
    assert (line["loss"], line["loss.low"], line["loss.high"]) == (1.5, None, None)


def test_two_seeds_that_differ_alike_are_no_proof() -> None:
    """Their p was 0, and the verdict "better"."""
    rows = [row("random", seed, 0.5) for seed in range(2)]
    rows += [row("surgeon", seed, 0.54) for seed in range(2)]
    lines = {line["method"]: line for line in summarize(rows, ["method", "ratio", "seed"])}
    assert lines["surgeon"]["than random"] == "alike"
    assert lines["surgeon"]["than random.p"] > 0.05


def test_a_table_without_random_cuts_or_methods_tests_nothing():
    few = [each for each in ROWS if each["method"] != "random"]
    assert not any("than random" in line for line in summarize(few, ["method", "ratio", "seed"]))
    plain = [{**each, "group": each["method"]} for each in ROWS]
    lines = summarize(plain, ["seed"])
    assert [line["runs"] for line in lines] == [3, 3, 3]


def test_what_is_not_done_does_not_count():
    planned = [{**each, "state": "planned"} for each in ROWS]
    assert summarize(planned, ["method", "ratio", "seed"]) == []


def test_columns_of_a_cut_and_of_a_matrix():
    cut = {
        "kind": "prune", "seconds": 1.0, "heads": {"before": 8, "after": 4, "kept": "22"},
        "scores": {
            "before": {"score": 0.9},
            "after": {"metric": "f1", "score": 0.8, "low": 0.7, "high": 0.9, "n": 5},
            "difference": {"value": -0.1, "low": -0.2, "high": 0.0}, "random": {"mean": 0.5},
        },
    }  # fmt: skip
    found = measures(whole_record("prune", cut))
    assert (found["score"], found["full"], found["difference_low"]) == (0.8, 0.9, -0.2)
    assert (found["kept"], found["random"], found["parameters"]) == (4, 0.5, None)
    each = {"stack": "encoder", "distance": "js", "mean": 0.3, "largest_error": 0.01}
    near = {"kind": "redundancy", "seconds": 2.0, "count": 7, "summary": [each]}
    near = whole_record("redundancy", near)
    assert measures(near) == {"kind": "redundancy", "seconds": 2.0, "inputs": 7, "js": 0.3,
                              "js.error": 0.01}  # fmt: skip
    near["summary"] += [{**near["summary"][0], "stack": "decoder"}]
    assert {"encoder.js", "decoder.js"} <= set(measures(near))
