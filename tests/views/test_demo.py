from __future__ import annotations

from headcount.views.demo import (
    NEXT,
    STORY,
    tell_bench,
    tell_curve,
    tell_importance,
    tell_redundancy,
    tell_report,
    tell_roles,
    tell_search,
    tell_train,
)


def test_every_step_is_told_in_a_sentence_of_its_numbers():
    scored = {"metric": "f1", "score": 0.81234, "n": 1000}
    assert "f1 0.812 on 1,000 sentences" in tell_train({"evaluation": scored})
    assert tell_search({"sentence": "It needs 3."}) == "It needs 3."
    rows = [{"ratio": 0.5, "method": "a", "mean": 0.3}, {"ratio": 0.5, "method": "b", "mean": 0.6},
            {"ratio": 0.9, "method": "b", "mean": 0.1}]  # fmt: skip
    told = tell_curve({"summary": rows, "full": {"score": 0.9}})
    assert "b 0.600, a 0.300 (all heads 0.900)" in told
    near = {"smallest": 0.1, "largest": 0.9, "mean": 0.5, "distance": "js"}
    assert "0.10 apart, the farthest 0.90" in tell_redundancy({"summary": [near], "count": 7})
    felt = tell_importance({"scores": {"encoder": [[0.1, 0.4], [0.05, 0.2]]}})
    assert felt == "Head 0.1 most (0.400), head 1.0 least (0.0500)."
    assert tell_roles({"roles": ["next", None, "next"]}).startswith("2 next of 3")
    timed = {"kind": "removed", "ratio": {"median": 0.8, "low": 0.7, "high": 0.9}, "ideal": 0.75}
    assert "0.80 [0.70, 0.90] of the time" in tell_bench({"timings": [{"kind": "dense"}, timed]})
    assert tell_report({"bytes": 2_500_000, "files": 9}) == "2.5 MB from 9 files."


def test_the_story_begins_with_a_model_and_ends_with_a_page():
    commands = [step.command.split()[0] for step in STORY]
    assert (commands[0], commands[1], commands[-1]) == ("train", "search", "report")
    assert len(NEXT) == 3
