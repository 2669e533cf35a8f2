"""Records as rows, and methods tested against random cuts of the same table."""

from __future__ import annotations

from typing import Any

from headcount.statistics import compare_pairs
from headcount.studies.gather import measures, summarize


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
        assert lines[method]["than random.p"] == want[method, "random"]["p_corrected"]
        assert lines[method]["than random.comparisons"] == 2
    assert lines["surgeon"]["than random"] == "better"
    assert lines["cluster"]["than random"] == "alike"
    assert lines["cluster"]["than random.seeds_needed"] == want["cluster", "random"]["seeds_needed"]
    assert "than random" not in lines["random"]


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
    found = measures(cut)
    assert (found["score"], found["full"], found["difference_low"]) == (0.8, 0.9, -0.2)
    assert (found["kept"], found["random"], found["parameters"]) == (4, 0.5, None)
    each = {"stack": "encoder", "distance": "js", "mean": 0.3, "largest_error": 0.01}
    near = {"kind": "redundancy", "seconds": 2.0, "count": 7, "summary": [each]}
    assert measures(near) == {"kind": "redundancy", "seconds": 2.0, "inputs": 7, "js": 0.3,
                              "js.error": 0.01}  # fmt: skip
    near["summary"] = [each, {**each, "stack": "decoder"}]
    assert {"encoder.js", "decoder.js"} <= set(measures(near))
