"""Timings as the bench has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headcount.views.page.cost import timings
from headcount.views.page.reading import Interval
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput


def test_timings_are_the_benchs(subject: PageSubject, report: ReportInput, files: Path) -> None:
    made, _ = timings(subject, report)
    data = json.loads((files / "bench.json").read_text())
    assert [row.speedup.value for row in made.rows] == [
        row["speedup"]["median"] for row in data["timings"]
    ]
    assert made.rows[2].max_speedup == pytest.approx(1 / 0.7)
    assert made.about == "batch 1 × 64 tokens, cpu, 1 thread, 5 rounds"


def test_of_several_shapes_each_row_says_its_own(subject: PageSubject, report: ReportInput) -> None:
    data = subject.of("bench")[0].data
    data["shapes"] = [{"batch": 1}, {"batch": 8}]
    data["timings"] = [row | {"batch": batch, "length": 64}
                       for batch in (1, 8) for row in data["timings"]]  # fmt: skip
    names = [row.name for row in timings(subject, report)[0].rows]
    assert names[0] == "dense, 1 × 64 tokens"
    assert len(set(names)) == len(data["timings"])


def test_a_bench_without_its_rows_is_named(subject: PageSubject, report: ReportInput) -> None:
    del subject.of("bench")[0].data["timings"]
    assert [each.file for each in timings(subject, report)] == ["in search"]
    assert "'timings'" in report.skipped[0][1]


def test_a_search_is_a_bench_of_its_selected_model(
    subject: PageSubject, report: ReportInput
) -> None:
    _, made = timings(subject, report)
    dense, pruned = made.rows
    assert (dense.heads, pruned.heads) == (12, 6)
    assert pruned.speedup == Interval(1.4, 1.3, 1.5)
    assert pruned.seconds.value == pytest.approx(0.010)
    assert made.about == "batch 8 × 14 tokens, cpu, 1 thread, 15 rounds"
    assert made.command == "headcount search model --data rows"
