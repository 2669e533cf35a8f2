"""Transfer and gates as their files have them."""

from __future__ import annotations

import base64
import json
import zlib
from itertools import chain
from pathlib import Path

import numpy as np

from headcount.learned.trace import load_trace
from headcount.views.page.changes import RecallPoint, gates, transfers
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput


def test_transfer_by_layer(subject: PageSubject, report: ReportInput, files: Path) -> None:
    (made,) = transfers(subject, report)
    data = json.loads((files / "transfer.json").read_text())
    assert [row.mean for row in made.layers] == [r["mean"] for r in data["drift"]["layers"]]
    assert [row.weights for row in made.layers] == [0.1] * 3
    assert made.importance[0].values == [*chain(*data["importance"]["task"]["encoder"])]
    assert made.recall[1] == RecallPoint(0.9, 0.7, 0.4)
    two = (made.pretrained, made.finetuned)
    assert (*two, made.n) == ("before (pre-trained)", "model (fine-tuned)", 40)


def test_gates_at_every_noted_step(subject: PageSubject, report: ReportInput, files: Path) -> None:
    (made,) = gates(subject, report)
    trace = load_trace(files / "gated")
    raw = np.frombuffer(zlib.decompress(base64.b64decode(made.values)), "<f4")
    np.testing.assert_array_equal(raw.reshape(-1, 12), np.array(trace.values))
    states = np.frombuffer(zlib.decompress(base64.b64decode(made.states)), "u1")
    np.testing.assert_array_equal(states.reshape(-1, 12), np.array(trace.states))
    assert made.steps == trace.steps
    assert dict(zip(made.count_steps, made.opened, strict=True))[50] == trace.opened[-1]
    assert (made.closings, made.reopenings) == (sum(trace.closings), sum(trace.reopenings))
