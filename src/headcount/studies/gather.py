"""The records of a study as rows, and what they come to over their seeds.

Rows go to Parquet and CSV; a summary has a line for each combination of everything but the seed.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from headcount.base.errors import HeadcountError
from headcount.base.files import whole
from headcount.base.json_object import JsonDict
from headcount.base.options import defined
from headcount.runs.record import result_of
from headcount.studies.ledger import Ledger
from headcount.studies.plan import Plan
from headcount.studies.summary import NO_SCALE, Scale, compare_with, over_seeds

SEED, METHOD = "seed", "method"
REFERENCES = ("random", "all-heads")
"""Methods that the others are tested against, where a study has them."""
Row = JsonDict


@dataclass(frozen=True, kw_only=True)
class StudyTable:
    """All runs of a study as a table."""

    name: str
    rows: Sequence[Row]
    """One for each run that the file asks for: group, axes, key, state, and what came out."""
    summary: Sequence[Row]
    """One for each group and combination of axes but the seed: mean and interval over seeds."""
    damaged: Sequence[str] = ()
    """Records that cannot be read, in words."""

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {
            "name": self.name,
            "rows": list(self.rows),
            "summary": list(self.summary),
            "damaged": list(self.damaged),
        }

    def save(self, folder: str | Path) -> list[Path]:
        """Write NAME.csv and NAME.parquet."""
        folder = Path(folder)
        paths = [folder / f"{self.name}.csv", folder / f"{self.name}.parquet"]
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        with whole(paths[0]) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(self.rows)
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = {name: _column([row.get(name) for row in self.rows]) for name in columns}
        with whole(paths[1]) as partial:
            pq.write_table(pa.table(table), partial)
        return paths


def _column(values: list[Any]) -> list[Any]:
    """Values of one type: a column of numbers and words is one of words."""
    numbers = all(value is None or isinstance(value, int | float) for value in values)
    return values if numbers else [None if value is None else str(value) for value in values]


def gather(plan: Plan, ledger: Ledger) -> StudyTable:
    """Read the records of all runs that are done."""
    states = ledger.states([cell.key for cell in plan.cells])
    axes = list(dict.fromkeys(axis for cell in plan.cells for axis in cell.axes))
    rows, damaged = [], []
    for cell in plan.cells:
        row: Row = {"group": cell.group} | {axis: cell.axes.get(axis) for axis in axes}
        row |= {"key": cell.key, "state": states[cell.key].name}
        if row["state"] == "done":
            try:
                row |= measures(ledger.record(cell.key))
            except (HeadcountError, KeyError, TypeError, AttributeError) as error:
                damaged.append(f"{cell.key}: {error}")
                row["state"] = "damaged"
        rows.append(row)
    return StudyTable(name=plan.name, rows=rows, summary=summarize(rows, axes), damaged=damaged)


def measures(record: Mapping[str, Any]) -> Row:
    """What came out of a run, as columns."""
    result = result_of(record)
    columns: Row = {"kind": record["kind"], "seconds": record["seconds"]}
    if (scored := result.evaluated) is not None:
        columns |= {name: getattr(scored, name) for name in ("metric", "score", "low", "high", "n")}
    return columns | result.columns()


NOT_MEASURED = {
    *("seconds", "n", "heads", "kept", "inputs", "steps", "parameters"),
    *("low", "high", "full", "difference_low", "difference_high"),
}
"""Numbers that are not averaged over seeds."""
OF_THE_METRIC = ("score", "random", "difference")
"""Columns in the unit of the score."""
ENDS = {"score": ("low", "high"), "difference": ("difference_low", "difference_high")}
"""Columns that have an interval over the rows of one run."""
TESTED = {
    "verdict": "",
    "p_corrected": ".p",
    "comparisons": ".comparisons",
    "seeds_needed": ".seeds_needed",
}
"""What a line has of a test, and the end of its column."""


def summarize(rows: Sequence[Row], axes: Sequence[str]) -> list[Row]:
    """A line for each combination of everything but the seed, tested where there is a reference."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    kept = [axis for axis in axes if axis != SEED]
    for row in rows:
        if row["state"] == "done":
            groups.setdefault((row["group"], *(str(row[axis]) for axis in kept)), []).append(row)
    lines = []
    for group in groups.values():
        first = group[0]
        line: Row = {"group": first["group"]} | {axis: first[axis] for axis in kept}
        line |= {"runs": len(group), "kind": first.get("kind")}
        if "metric" in first:
            line["metric"] = first["metric"]
        for name in first:
            if _is_measure(name, group, axes):
                line |= _spread(name, group)
        for name in ("full", "kept", "heads", "n"):
            if name in first and len({row.get(name) for row in group}) == 1:
                line[name] = first[name]
        lines.append(line)
    _test(lines, list(groups.values()), kept)
    return lines


def _test(lines: list[Row], runs: Sequence[Sequence[Row]], axes: Sequence[str]) -> None:
    """Say of every method whether it is better than random prunings, and than all heads.

    Runs are paired by seed; the comparisons with one reference are corrected for their number.
    """
    if METHOD not in axes:
        return
    others = ["group", "metric", *(axis for axis in axes if axis != METHOD)]
    labels = {
        (str(line[METHOD]), *(str(line[name]) for name in others)): number
        for number, line in enumerate(lines)
        if line.get("metric") is not None
    }
    for other, better in product(REFERENCES, (True, False)):
        scores, scales = {}, []
        for label, number in labels.items():
            scale = Scale(
                lines[number]["metric"], lines[number].get("n"), lines[number].get("score")
            )
            if scale.higher_is_better is better:
                scored = [row for row in runs[number] if row.get("score") is not None]
                scores[label] = {row.get(SEED) or 0: row["score"] for row in scored}
                if label[0] != other and (other, *label[1:]) in labels:
                    scales.append(scale)
        tests = compare_with(scores, [lambda label, other=other: (other, *label[1:])], *scales)
        for (label, _), row in tests.items():
            lines[labels[label]] |= {
                f"than {other}{end}": defined(row[name]) for name, end in TESTED.items()
            }


def _is_measure(name: str, group: Sequence[Row], axes: Sequence[str]) -> bool:
    if name in NOT_MEASURED or name in axes or name.endswith(".error"):
        return False
    values = [row.get(name) for row in group if row.get(name) is not None]
    numbers = all(
        isinstance(entry, int | float) and not isinstance(entry, bool) for entry in values
    )
    return bool(values) and numbers


def _spread(name: str, group: Sequence[Row]) -> Row:
    """Mean and interval of a column; of one run over its rows, where they are known."""
    first = group[0]
    values, scores = (
        [float(row[column]) for row in group if row.get(column) is not None]
        for column in (name, "score")
    )
    scale = NO_SCALE
    if first.get("metric") is not None and name in OF_THE_METRIC:
        level = sum(scores) / len(scores) if scores and name == "difference" else None
        scale = Scale(first["metric"], first.get("n"), level)
    below, above = ENDS.get(name, ("", ""))
    mean, low, high = over_seeds(
        values, scale, differences=name == "difference", single=(first.get(below), first.get(above))
    )
    return defined({name: mean, f"{name}.low": low, f"{name}.high": high})
