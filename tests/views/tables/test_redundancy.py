from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from headcount.heads import Layout
from headcount.likeness.result import Measurement, Redundancy
from headcount.views.tables.redundancy import redundancy_json, redundancy_table


def redundancy() -> Redundancy:
    values = np.array([[0.0, 0.5, 0.2], [0.5, 0.0, 0.9], [0.2, 0.9, 0.0]])
    made = {"class": "Bert", "inputs": "lines", "seed": 3, "stopped_early": True}
    measured = {("encoder", "js"): Measurement(values, values / 10)}
    return Redundancy(layout=Layout.of(encoder=[2, 1]), measured=measured, count=8, provenance=made)


def test_the_most_alike_heads_come_first() -> None:
    (each,) = redundancy_json(redundancy())["summary"]
    assert [pair["distance"] for pair in each["nearest"]] == [0.2, 0.5, 0.9]
    assert each["nearest"][0]["heads"] == ["encoder.0.0", "encoder.1.0"]


def test_a_line_for_each_matrix(shown: Any) -> None:
    told = shown(redundancy_table(redundancy(), Path("r.npz")))
    assert told.startswith("Bert on 8 inputs (lines), stopped at its tolerance, seed 3")
    assert "encoder.0.0 and encoder.1.0" in told
    assert "Written to r.npz." in told
