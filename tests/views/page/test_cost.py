"""Timings as the bench has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headcount.views.page.cost import timings
from headcount.views.page.subjects import PageSubject
from headcount.views.page.walk import ReportInput


def test_timings_are_the_benchs(subject: PageSubject, found: ReportInput, files: Path) -> None:
    made, _ = timings(subject, found)
    data = json.loads((files / "bench.json").read_text())
    assert [row["speedup"]["value"] for row in made["rows"]] == [
        row["speedup"]["median"] for row in data["timings"]
    ]
    assert all("ratio" not in row for row in made["rows"])  # one statistic
    assert made["about"] == "batch 1 × 64 tokens, cpu, 1 thread, 5 rounds"


def test_a_record_with_shares_of_the_time_alone_is_turned(
    subject: PageSubject, found: ReportInput
) -> None:
    for row in subject.of("bench")[0].data["timings"]:
        del row["speedup"]
    (removed,) = [r for r in timings(subject, found)[0]["rows"] if r["kind"] == "removed"]
    assert removed["speedup"] == pytest.approx(
        {"value": 1 / 0.7, "low": 1 / 0.72, "high": 1 / 0.68}
    )
    assert removed["best"] == pytest.approx(1 / 0.7)


def test_of_several_shapes_each_row_says_its_own(subject: PageSubject, found: ReportInput) -> None:
    data = subject.of("bench")[0].data
    data["shapes"] = [{"batch": 1}, {"batch": 8}]
    data["timings"] = [row | {"batch": batch, "length": 64}
                       for batch in (1, 8) for row in data["timings"]]  # fmt: skip
    names = [row["name"] for row in timings(subject, found)[0]["rows"]]
    assert names[0] == "dense, 1 × 64 tokens"
    assert len(set(names)) == len(data["timings"])


def test_a_bench_without_its_rows_is_named(subject: PageSubject, found: ReportInput) -> None:
    del subject.of("bench")[0].data["timings"]
    assert [each["file"] for each in timings(subject, found)] == ["in search"]
    assert "'timings'" in found.skipped[0][1]


def test_a_search_is_a_bench_of_its_answer(subject: PageSubject, found: ReportInput) -> None:
    _, made = timings(subject, found)
    dense, cut = made["rows"]
    assert (dense["heads"], cut["heads"]) == (12, 6)
    assert cut["speedup"] == {"value": 1.4, "low": 1.3, "high": 1.5}
    assert cut["seconds"]["value"] == pytest.approx(0.010)
    assert made["about"] == "batch 8 × 14 tokens, cpu, 1 thread, 15 rounds"
    assert made["command"] == "headcount search model --data rows"
