"""Timings as the bench has them."""

from __future__ import annotations

import json
from pathlib import Path

from headcount.views.page.cost import timings
from headcount.views.page.subjects import Subject
from headcount.views.page.walk import Found


def test_timings_are_the_benchs(subject: Subject, found: Found, files: Path) -> None:
    (made,) = timings(subject, found)
    data = json.loads((files / "bench.json").read_text())
    assert [row["ratio"]["value"] for row in made["rows"]] == [
        row["ratio"]["median"] for row in data["timings"]
    ]
    assert made["about"] == "batch 1 × 64 tokens, cpu, 1 thread, 5 rounds"


def test_a_bench_without_its_rows_is_named(subject: Subject, found: Found) -> None:
    del subject.of("bench")[0].data["timings"]
    assert timings(subject, found) == []
    assert "'timings'" in found.skipped[0][1]
