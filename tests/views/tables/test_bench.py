from __future__ import annotations

from dataclasses import replace

from headcount.models.bench import Bench, Row
from headcount.models.timing import Estimate
from headcount.views.tables.bench import columns_of, number, page, remarks


def row(name: str, kind: str, time: float, ideal: float | None) -> Row:
    spread = Estimate(time, time - 0.1, time + 0.1)
    return Row(
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


FOUND = Bench(
    model="BertModel",
    batch=8,
    length=128,
    reads="128 tokens",
    rounds=9,
    device="cpu",
    threads=2,
    share=0.351,
    ceiling=1.54,
    rows=(row("dense", "dense", 1.0, 1.0), row("removed", "removed", 0.9, 0.8)),
)


def test_a_column_says_how_near_the_ideal_a_removal_is() -> None:
    cells = {column.title: list(column.cells) for column in columns_of(FOUND.rows)}
    assert cells["time / dense"] == ["1.000", "0.900"]
    assert cells["/ ideal"] == ["", "1.125"]
    assert cells["95 %"] == ["", "0.800 - 1.000"]
    assert cells["parameters"] == ["2.36 M", "2.36 M"]
    assert number(None) == "-"


def test_remarks_say_what_can_be_had_at_best() -> None:
    assert list(remarks(FOUND)) == [
        "Heads are 35.1 % of the FLOPs here: removing every one leaves 0.649 of the time at best "
        "(1.54 x as fast)."
    ]
    assert str(page(replace(FOUND, weights="random")).renderables[0]).startswith(
        "BertModel, random weights"
    )


def test_plain_values_for_machines() -> None:
    data = FOUND.to_json()
    assert (data["length"], len(data["timings"])) == (128, 2)
    assert data["timings"][1]["over_ideal"] == 0.9 / 0.8
