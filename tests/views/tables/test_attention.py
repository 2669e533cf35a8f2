from __future__ import annotations

from typing import Any

from headcount.views.tables.attention import page


def head(index: int, run: int = 0, **more: Any) -> dict[str, Any]:
    most = {"token": "king", "position": 2, "share": 0.5}
    said = {"entropy": 1.5, "distance": 2.0, "most_attended": most}
    return {"stack": "encoder", "layer": 1, "head": index, "run": run, **said, **more}


def data(*heads: dict[str, Any], pruned: str | None = None) -> dict[str, Any]:
    return {"pruned": pruned, "heads": list(heads), "tokens": {"encoder": {"keys": ["a", "b"]}}}


def test_one_model(shown: Any) -> None:
    told = shown(page(data(head(0), head(3, most_attended=None))))
    rows = [line.split() for line in told.splitlines()]
    assert ["encoder.1.0", "1.50", "2.00", "king", "(2)", "0.50"] in rows
    assert "nothing" in told
    assert "after:" not in told
    assert told.endswith("encoder: a b")


def test_two_models_and_a_layer_that_runs_twice(shown: Any) -> None:
    gone = head(0, after=None, divergence=None)
    kept = head(1, run=1, after=head(1), divergence=0.25)
    told = shown(page(data(gone, kept, pruned="small")))
    assert "gone" in told
    assert "encoder.1.1, run 1" in told
    assert "0.250" in told
    assert "after: entropy, bits" in told
