"""Matrices come back from their packed form; gap, tree and agreement are the library's own."""

from __future__ import annotations

import base64
import operator
import zlib
from pathlib import Path

import numpy as np
import pytest

from headcount.likeness.compare import compare
from headcount.likeness.layers import layer_distances, layers_of
from headcount.likeness.result import load_redundancy
from headcount.views.page import matrices as module
from headcount.views.page.matrices import agreements, matrices
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput


def test_a_matrix_comes_back(subject: PageSubject, report: ReportInput, files: Path) -> None:
    listed = matrices(subject, report)
    assert [(each.file, each.distance) for each in listed] == [
        ("random", "js"), ("random", "cos"), ("task", "js"), ("task", "cos"),
        ("phase", "js"), ("phase", "cos"),
    ]  # fmt: skip
    phases = ["model (fine-tuned)"] * 4 + ["before (pre-trained)"] * 2
    assert [each.model for each in listed] == phases
    assert [each.inputs for each in listed[::2]] == ["random", "task", "random"]
    values = load_redundancy(files / "random.npz")["js"].values
    packed = listed[0].values
    raw = np.frombuffer(zlib.decompress(base64.b64decode(packed.data)), "<u2")
    upper = values[np.triu_indices(12, 1)]
    np.testing.assert_allclose(packed.low + raw * packed.scale, upper, atol=packed.scale)
    assert sorted(listed[0].order) == list(range(12))


def test_gap_and_agreement_are_those_of_compare(
    subject: PageSubject, report: ReportInput, files: Path
) -> None:
    compared = compare(
        {name: load_redundancy(files / f"{name}.npz") for name in ("random", "task", "phase")}
    )
    gap = matrices(subject, report)[0].gap
    assert compared.where[0].gap is not None
    assert gap == compared.where[0].gap
    rows = agreements(subject, report)
    pairs = [*compared.between_distances, *compared.between_files]
    key = operator.attrgetter("one", "other", "within")
    assert sorted(rows, key=key) == sorted(pairs, key=key)


def test_the_tree_joins_the_nearest_layers_first(
    subject: PageSubject, report: ReportInput, files: Path
) -> None:
    tree = matrices(subject, report)[0].tree
    value = load_redundancy(files / "random.npz")
    apart = layer_distances(value["js"].values, layers_of(value.layout, "encoder"))
    pairs = {(a, b): apart[a, b] for a in range(3) for b in range(a + 1, 3)}
    first = min(pairs, key=pairs.__getitem__)
    assert sorted(tree.joins[0][:2]) == list(first)
    assert tree.joins[0][2] == pytest.approx(pairs[first])


def test_too_many_pairs_are_left_out_and_said(
    subject: PageSubject, report: ReportInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUDGET", 150)
    assert len(matrices(subject, report)) == 2
    assert all("too large" in why for _, why in report.skipped)


def test_no_test_where_permuting_would_take_too_long(
    subject: PageSubject, report: ReportInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WORK", 1000)
    assert {str(row.agreement.p_value) for row in agreements(subject, report)} == {"nan"}


def test_files_of_one_model_and_inputs_are_compared_apart(
    subject: PageSubject, report: ReportInput
) -> None:
    for item in subject.of("matrix"):
        item.data.provenance.update(model="model", inputs="the same")
    listed = [each.inputs for each in matrices(subject, report) if each.distance == "js"]
    assert listed == ["the same", "the same (random)", "the same (task)"]
