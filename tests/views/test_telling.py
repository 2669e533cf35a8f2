from __future__ import annotations

from headcount.views.telling import (
    tell_attention,
    tell_bench,
    tell_curve,
    tell_gates,
    tell_importance,
    tell_redundancy,
    tell_report,
    tell_roles,
    tell_search,
    tell_train,
    tell_transfer,
)


def test_scores_and_the_answer():
    scored = {"metric": "f1", "score": 0.81234, "n": 1000}
    assert "f1 0.812 on 1,000 sentences" in tell_train({"evaluation": scored})
    assert tell_search({"sentence": "It needs 3."}) == "It needs 3."
    rows = [{"ratio": 0.5, "method": "random", "mean": 0.3}, {"ratio": 0.9, "method": "b"},
            {"ratio": 0.5, "method": "b", "mean": 0.6}]  # fmt: skip
    told = tell_curve({"summary": rows, "full": {"score": 0.9}})
    assert told.endswith("b 0.600, random 0.300 (all heads 0.900). It does: random cuts lose most.")
    rows[0]["mean"] = 0.7
    assert tell_curve({"summary": rows, "full": {"score": 0.9}}).endswith("(all heads 0.900).")


def test_heads():
    near = {"smallest": 0.1, "largest": 0.9, "mean": 0.5, "distance": "js"}
    told = tell_redundancy({"summary": [near], "count": 7})
    assert "0.10 apart, the two least alike 0.90; 0.50 in the mean" in told
    felt = tell_importance({"scores": {"encoder": [[0.1, 0.4], [0.05, 0.2]]}})
    assert felt == "On head 1 of layer 0 most, 8 times as much as on head 0 of layer 1."
    shares = {"stand_in": {"values": [0.2, None, 0.4, 0.3]}}
    told = tell_roles({"roles": ["next", None, "next"], "quantities": shares})
    assert told.startswith("2 look at the token behind; 1 have no single role.")
    assert "30 %" in told
    none = tell_roles({"roles": [None], "quantities": shares})
    assert none.startswith("None has a clear role; 1 have")


def test_changes():
    rows = [
        {"run": 0, "after": None, "divergence": None},
        {"run": 1, "after": None},
        {"run": 0, "after": {}, "divergence": 0.01},
        {"run": 0, "after": {}, "divergence": 0.03},
    ]
    told = tell_attention({"heads": rows})
    assert told.startswith("1 heads are gone, and the other 2 look almost where they looked: 0.020")
    layers = [{"layer": 0, "mean": 0.01}, {"layer": 1, "mean": 0.2}]
    told = tell_transfer({"drift": {"layers": layers}})
    assert told.startswith("Heads of layer 1 most")
    assert "0.200 bits; in layer 0 by 0.010" in told
    heads = {"before": 48, "after": 29, "kept": "366554"}
    scores = {"metric": "f1", "after": {"score": 0.7}}
    assert "29 of 48 heads open (366554 by layer): f1 0.700" in tell_gates(
        {"heads": heads, "scores": scores}
    )


def test_time_and_the_page():
    speedup = {"median": 1.25, "low": 1.1, "high": 1.4}
    timed = {"kind": "removed", "speedup": speedup, "bound": 1.5}
    told = tell_bench({"timings": [{"kind": "dense"}, timed]})
    assert told == "It is 1.25 × as fast [1.10, 1.40]; the FLOPs allow 1.50 × at best."
    alone = tell_bench({"timings": [{**timed, "bound": None}]})
    assert alone == "It is 1.25 × as fast [1.10, 1.40]."
    assert tell_report({"bytes": 2_500_000, "files": 9}) == "2.5 MB from 9 files."
