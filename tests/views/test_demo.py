from __future__ import annotations

import shlex

from headcount.views.demo import (
    BEGIN,
    NEXT,
    STORY,
    describe_attention,
    describe_bench,
    describe_curve,
    describe_gates,
    describe_importance,
    describe_redundancy,
    describe_roles,
    describe_training,
    describe_transfer,
)

DESCRIBE = {step.command.split()[0]: step.describe for step in STORY}


def test_the_story_begins_with_a_model_and_ends_with_a_page():
    commands = [step.command.split()[0] for step in STORY]
    assert (commands[0], commands[1], commands[-1]) == ("train", "search", "report")
    assert {"curve", "redundancy", "importance", "roles", "bench"} <= set(commands)
    assert "offline" in BEGIN
    assert len(NEXT) == 3


def test_every_part_of_the_page_has_a_step():
    commands = {step.command.split()[0] for step in STORY}
    assert {"attention", "transfer", "prune"} <= commands  # attention, fine-tuning, gates
    for step in STORY:
        assert "{out}" in step.command
        assert shlex.split(step.command)


def test_scores_and_the_sentence_of_the_search():
    scores = {"metric": "f1", "score": 0.81234, "n": 1000}
    assert "f1 0.812 on 1,000 sentences" in describe_training({"evaluation": scores})
    assert DESCRIBE["search"]({"sentence": "It needs 3."}) == "It needs 3."
    rows = [{"ratio": 0.5, "method": "random", "mean": 0.3}, {"ratio": 0.9, "method": "b"},
            {"ratio": 0.5, "method": "b", "mean": 0.6}]  # fmt: skip
    text = describe_curve({"summary": rows, "full": {"score": 0.9}})
    assert text.endswith(
        "b 0.600, random 0.300 (all heads 0.900). It does: random heads lose most."
    )
    rows[0]["mean"] = 0.7
    assert describe_curve({"summary": rows, "full": {"score": 0.9}}).endswith("(all heads 0.900).")


def test_heads():
    near = {"smallest": 0.1, "largest": 0.9, "mean": 0.5, "distance": "js"}
    text = describe_redundancy({"summary": [near], "count": 7})
    assert "0.10 apart, the two least alike 0.90; the mean is 0.50" in text
    text = describe_importance({"scores": {"encoder": [[0.1, 0.4], [0.05, 0.2]]}})
    assert text == "On head 1 of layer 0 most, 8 times as much as on head 0 of layer 1."
    shares = {"replaceable": {"values": [0.2, None, 0.4, 0.3]}}
    text = describe_roles({"roles": ["next", None, "next"], "quantities": shares})
    assert text.startswith("2 attend to the next token; 1 have no single role.")
    assert "30 %" in text
    none = describe_roles({"roles": [None], "quantities": shares})
    assert none.startswith("None has a clear role; 1 have")


def test_changes():
    rows = [
        {"run": 0, "after": None, "divergence": None},
        {"run": 1, "after": None},
        {"run": 0, "after": {}, "divergence": 0.01},
        {"run": 0, "after": {}, "divergence": 0.03},
    ]
    text = describe_attention({"heads": rows})
    assert text.startswith(
        "1 heads are gone, and the attention of the other 2 is almost the same: 0.020"
    )
    layers = [{"layer": 0, "mean": 0.01}, {"layer": 1, "mean": 0.2}]
    text = describe_transfer({"drift": {"layers": layers}})
    assert text.startswith("Heads of layer 1 most")
    assert "0.200 bits; in layer 0 by 0.010" in text
    heads = {"before": 48, "after": 29, "kept": "366554"}
    scores = {"metric": "f1", "after": {"score": 0.7}}
    assert "29 of 48 heads open (366554 by layer): f1 0.700" in describe_gates(
        {"heads": heads, "scores": scores}
    )


def test_time_and_the_page():
    speedup = {"median": 1.25, "low": 1.1, "high": 1.4}
    timed = {"kind": "removed", "speedup": speedup, "bound": 1.5}
    text = describe_bench({"timings": [{"kind": "dense"}, timed]})
    assert text == "It is 1.25 × as fast [1.10, 1.40]; the FLOPs allow 1.50 × at best."
    alone = describe_bench({"timings": [{**timed, "bound": None}]})
    assert alone == "It is 1.25 × as fast [1.10, 1.40]."
    assert DESCRIBE["report"]({"bytes": 2_500_000, "files": 9}) == "2.5 MB from 9 files."
