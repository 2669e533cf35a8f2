"""Attention of a sentence and examples of roles, whole or by the places most looked at."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import numpy as np
import pytest

from headcount.views.page import sentences as module
from headcount.views.page.sentences import roles, sentences
from headcount.views.page.subjects import PageSubject, subjects
from headcount.views.page.walk import ReportInput, walk
from page.made import attention, study
from views.page.conftest import LAYOUT


def raw(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), kind)


def test_a_map_comes_back(subject: PageSubject, report: ReportInput, files: Path) -> None:
    (made,) = sentences(subject, report)
    maps = np.load(files / "attention" / "attention.npz")
    one = made.maps.before[5]
    back = raw(one.data, "u1").reshape(one.shape) / 255
    np.testing.assert_allclose(back, maps["before/encoder.1.1/0"], atol=0.5 / 255 + 1e-3)
    assert [head is None for head in made.maps.after] == [True, False] * 6
    assert [row.removed for row in made.heads] == [True, False] * 6
    assert made.tokens["encoder"]["keys"][1] == "word1"


def test_a_long_text_keeps_what_is_looked_at_most(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.5,), seeds=1)
    attention(tmp_path / "attention", LAYOUT, "model", tokens=200)
    report = walk([tmp_path])
    (made,) = sentences(subjects(report)[0], report)
    one = made.maps.before[0]
    whole = np.load(tmp_path / "attention" / "attention.npz")["before/encoder.0.0/0"].astype(float)
    places = raw(one.places, "<u2").reshape(200, module.TOP)
    values = raw(one.data, "u1").reshape(200, module.TOP) / 255
    for query in (0, 99, 199):
        np.testing.assert_allclose(
            values[query], np.sort(whole[query])[::-1][: module.TOP], atol=3e-3
        )
        np.testing.assert_allclose(whole[query][places[query]], values[query], atol=3e-3)


def test_maps_that_are_too_large_are_left_out(
    subject: PageSubject, report: ReportInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUDGET", 100)
    (made,) = sentences(subject, report)
    assert made.maps is None
    assert "too large" in report.skipped[0][1]


def test_roles_and_examples_go_to_their_heads(subject: PageSubject, report: ReportInput) -> None:
    (item,) = subject.of("roles")
    item.data["examples"] = [
        {"head": 1, "decile": 3, "tokens": ["a", "b"], "query": 0, "weights": [[0, 0.2], [1, 0.8]]},
        {"head": 4, "tokens": ["a"], "query": 0, "weights": [[0, 1.0]]},
        {"head": 99, "tokens": [], "query": 0, "weights": []},
    ]
    made = roles(subject, report)
    assert made is not None
    assert made.names == item.data["roles"]
    assert sorted(made.examples) == [1, 4]
    assert made.examples[1][0].weights == [(0, 0.2), (1, 0.8)]
    assert made.examples[4][0].weights == [(0, 1.0)]


def test_examples_after_a_cut(subject: PageSubject, report: ReportInput) -> None:
    (item,) = subject.of("roles")
    item.data["examples"] = [
        {"head": 0, "tokens": ["a", "b"], "keys": ["x", "y"], "query": 0, "weights": [[0, 1.0]],
         "after": {"weights": [[1, 0.5]], "most": []}},
        {"head": 1, "tokens": ["a"], "query": 0, "weights": [[0, 1.0]], "after": {"removed": True}},
        {"head": 2, "tokens": ["a"], "query": 0, "weights": [[0, 1.0]]},
    ]  # fmt: skip
    made = roles(subject, report)
    assert made is not None
    assert made.examples[0][0].after == [(1, 0.5)]
    assert made.examples[0][0].keys == ["x", "y"]
    assert made.examples[1][0].after is None
    assert [made.examples[at][0].pruned for at in range(3)] == [True, True, False]
