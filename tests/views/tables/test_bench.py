from __future__ import annotations

from dataclasses import replace

from headcount.costs.timed import BenchResult, BenchRow, Shape
from headcount.costs.timing import Estimate
from headcount.views.tables.bench import bench_table, columns_of, remarks


def row(name: str, kind: str, time: float, ideal: float | None) -> BenchRow:
    spread = Estimate(time, time - 0.09, time + 0.09)
    return BenchRow(
        name=name,
        kind=kind,
        heads=4,
        sparsity=0.5,
        seconds=spread,
        ratio=spread,
        ideal=ideal,
        parameters=2_362_368,
        memory=9_449_472,
    )


SHAPE = Shape(
    batch=8,
    length=128,
    reads="128 tokens",
    rounds=9,
    share=0.351,
    ceiling=1.54,
    rows=(row("dense", "dense", 1.0, 1.0), row("removed", "removed", 0.9, 0.8)),
)
FOUND = BenchResult(model="BertModel", device="cpu", threads=2, shapes=(SHAPE,))


def test_a_column_says_how_near_the_ideal_a_removal_is() -> None:
    cells = {column.title: list(column.cells) for column in columns_of(FOUND.shapes)}
    assert cells["× as fast"] == ["1.00", "1.11"]
    assert cells["at best"] == ["1.00", "1.25"]
    assert cells["95 %"] == ["", "1.01 - 1.23"]
    assert "batch" not in cells
    assert cells["parameters"] == ["2.36 M", "2.36 M"]


def test_remarks_say_what_can_be_had_at_best() -> None:
    assert list(remarks(FOUND)) == [
        "Heads are 35.1 % of the FLOPs here: without any of them the model could be 1.54 × as fast "
        "at best."
    ]
    assert str(bench_table(replace(FOUND, weights="random")).renderables[0]) == (
        "BertModel, random weights, batch 8 × 128 tokens, cpu, 2 threads, 9 rounds"
    )


def test_every_shape_has_its_rows_and_what_is_not_sure_is_said() -> None:
    wide = replace(SHAPE.rows[1], ratio=Estimate(0.9, 0.7, 1.0))
    one = replace(SHAPE, batch=1, rounds=30, rows=(SHAPE.rows[0], wide))
    short = replace(SHAPE, reads="32 tokens", length=32, ceiling=1.4)
    found = replace(FOUND, shapes=(SHAPE, one, short))
    cells = {column.title: list(column.cells) for column in columns_of(found.shapes)}
    names = ["8 × 128 tokens", "1 × 128 tokens", "8 × 32 tokens"]
    assert cells["batch"] == [name for name in names for _ in range(2)]
    said = list(remarks(found))
    assert [text.split(":")[0] for text in said[:2]] == [
        f"Heads are 35.1 % of the FLOPs with {reads}" for reads in ("128 tokens", "32 tokens")
    ]
    assert said[2:] == [
        "Intervals of batch 1 × 128 tokens are wider than ± 10 % after 30 rounds: this machine is "
        "busy. A longer --timing-seconds gives more rounds."
    ]
    head = str(bench_table(found).renderables[0])
    assert head == "BertModel, saved weights, 3 shapes of inputs, cpu, 2 threads, 9 to 30 rounds"


def test_plain_values_for_machines() -> None:
    data = FOUND.to_json()
    assert (data["length"], len(data["timings"])) == (128, 2)
    assert data["timings"][1]["over_ideal"] == 0.9 / 0.8
    assert data["timings"][1]["bound"] == 1 / 0.8
    assert data["timings"][1]["speedup"] == {
        "median": 1 / 0.9, "low": 1 / (0.9 + 0.09), "high": 1 / (0.9 - 0.09)
    }  # fmt: skip
