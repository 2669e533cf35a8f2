from __future__ import annotations

from headcount.runs.execute import execute
from headcount.runs.kinds.bench import BenchOptions
from headcount.runs.run import Run


def test_bench_is_a_run():
    options = BenchOptions(ratio=(0.5,), batch=1, length=8, repeats=6, timing_seconds=0, onnx=False)
    found = execute(Run("bench", "pocket", options=options))
    assert [row["name"] for row in found.record["timings"]] == [
        row.name for row in found.value.rows
    ]
