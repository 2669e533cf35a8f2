"""Cuts as people read them: the tables of `prune`, `curve`, `compare` and `sweep`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from headcount.base.names import split_words
from headcount.heads import Mask
from headcount.repair.repairs import done_words
from headcount.views.tables.amounts import interval, parameters, scored
from headcount.views.tables.columns import table

if TYPE_CHECKING:
    from headcount.studies.points import StudyResult


def prune_table(record: Mapping[str, Any]) -> Table:
    """Before, after and random cuts, as a record of a cut has them."""
    heads, counts, scores = record["heads"], record.get("parameters"), record.get("scores")
    rows: list[tuple[Any, ...]] = []
    for name, which in (("all heads", "before"), (_name(record), "after")):
        kept = heads["kept"] if which == "after" else ""
        row = [name, str(heads[which]), kept, "" if counts is None else parameters(counts[which])]
        if scores is not None:
            each = scores[which]
            row += [scored(each["score"]), interval(each)]
            row += [scores["lost"] if which == "after" else "", str(each["n"])]
        rows.append(tuple(row))
    columns = ["", "heads", "kept per layer", "parameters"]
    if scores is not None:
        columns += [scores["metric"], "95 % interval", "from all heads", "n"]
    if scores is not None and "random" in scores:
        draw = scores["random"]
        spread = f"{scored(draw['worst'])} to {scored(draw['best'])}"
        what = f"random, mean of {draw['draws']}"
        rows.append((what, str(heads["after"]), "", "", scored(draw["mean"]), spread, "", ""))
    return _captioned(table(columns, rows), record["rows_said"])


def removed_table(mask: Mask, sizes: Mapping[str, int], folder: Path) -> Table:
    """Heads that were taken out, with the parameters `before` and `after`."""
    rows = [
        ("heads", f"{len(mask.layout)} -> {len(mask)}"),
        ("kept per layer", mask.pattern),
        ("parameters", f"{parameters(sizes['before'])} -> {parameters(sizes['after'])}"),
        ("folder", folder),
    ]
    return table(["what", "result"], rows)


def _name(record: Mapping[str, Any]) -> str:
    return ", ".join([record["method"], *done_words([step["name"] for step in record["repair"]])])


def curve_table(found: StudyResult) -> Table:
    """A row for every method and ratio."""
    full, about, summary = found.full, found.about, found.summary()
    heads = sum(sum(stack["heads"]) for stack in about["layout"].values())
    rows: list[tuple[Any, ...]] = [
        ("all heads", "0", heads, 1, scored(full["score"]), "", "", "100.0 %", "")
    ]
    rows += [
        (
            row["method"],
            f"{row['ratio']:g}",
            row["kept"],
            row["seeds"],
            scored(row["mean"]),
            f"{row['sd']:.4f}" if row["seeds"] > 1 else "",
            f"{row['worst']:.4f} to {row['best']:.4f}",
            f"{100 * row['relative']:.1f} %",
            row["lost"],
        )
        for row in summary
    ]
    columns = ["method", "ratio", "kept", "seeds", "mean", "sd", "worst to best", "relative"]
    title = f"{about['task']} {split_words(about['split'])}, {found.metric}, n = {full['n']}"
    said = (
        f"Methods and recovery look at up to {about['samples']} rows of {about['looked_at']}; "
        f"{split_words(about['split'], full['n'])} are scored."
    )
    told = verdicts(summary, "random", lambda row: f"{row['method']} at {row['ratio']:g}")
    built = table([*columns, "from all heads"], rows, title=title)
    return _captioned(built, f"{said}\n{told}".strip())


def compare_table(found: StudyResult) -> Table:
    """A row for every method."""
    full, about, summary = found.full, found.about, found.summary()
    shown = (scored(full["score"]), interval(full), *[""] * 7)
    rows: list[tuple[Any, ...]] = [("all heads, as given", "", "", *shown)]
    for row in summary:
        budget, versus = row["budget"], row.get("against_random")
        trained = row.get("against_all_heads")
        rows.append(
            (
                row["method"],
                str(row["kept"]),
                str(row["seeds"]),
                scored(row["mean"]),
                interval(row),
                "" if versus is None else f"{versus['mean']:+.4f}",
                "" if versus is None else interval(versus),
                "" if versus is None else f"{versus['p_corrected']:.3g}",
                row["lost"],
                "" if trained is None else signed(trained, found.metric),
                f"{budget['epochs']:g}",
                str(budget["examples_measured"]),
            )
        )
    columns = ["method", "kept", "seeds", "mean", "95 % interval", "against random"]
    columns += ["95 % interval ", "p, corrected", "from the given model", "from all-heads"]
    columns += ["epochs", "rows measured"]
    title = f"{about['task']} {split_words(about['split'])}, {found.metric}, n = {full['n']}, "
    title += f"{100 * about['ratio']:g} % of the heads removed"
    told = [
        verdicts(summary, other, lambda row: row["method"]) for other in ("random", "all-heads")
    ]
    return _captioned(table(columns, rows, title=title), "\n".join(filter(None, told)))


def sweep_table(found: Any) -> Table:
    """A row for every value."""
    full, about, summary = found.full, found.about, found.summary()
    over = str(about["over"]).replace("_", "-")
    rows: list[tuple[Any, ...]] = [
        ("all heads", "", "", "", "", scored(full["score"]), interval(full), "100.0 %", "", "")
    ]
    rows += [
        (
            f"{row['value']:g}",
            str(row["seeds"]),
            f"{row['kept']:g}",
            f"{row['sparsity']['mean']:.3f}",
            interval(row["sparsity"], 3),
            scored(row["score"]["mean"]),
            interval(row["score"]),
            f"{100 * row['relative']:.1f} %",
            row["lost"],
            f"in {row['all_closed']} of {row['seeds']}" if row["all_closed"] else "",
        )
        for row in summary
    ]
    columns = [over, "seeds", "kept", "sparsity", "95 % interval", found.metric, "95 % interval "]
    columns += ["relative", "from all heads", "all gates closed"]
    title = f"{about['method']} on {about['task']} {split_words(about['split'])}, n = {full['n']}"
    trends = found.trends().items()
    said = [f"Spearman of {over} and {what}: {_trend(trend)}" for what, trend in trends]
    said += [verdicts(summary, "all heads", lambda row: f"{over} {row['value']:g}")]
    return _captioned(table(columns, rows, title=title), "\n".join(filter(None, said)))


def _captioned(built: Table, text: str) -> Table:
    built.caption, built.caption_justify = text or None, "left"
    return built


def _trend(trend: Mapping[str, float]) -> str:
    if trend["rho"] != trend["rho"]:
        return f"none, it is the same in all {trend['n']} runs"
    return f"{trend['rho']:+.3f}, p = {trend['p']:.3g}, {trend['n']} runs"


def verdicts(
    summary: Sequence[Mapping[str, Any]], other: str, name: Callable[[Mapping[str, Any]], str]
) -> str:
    """What rows were found against others: "random", "all-heads" or "all heads"; "" without any."""
    key = f"against_{other.replace(' ', '_').replace('-', '_')}"
    rows = [(row, row[key]) for row in summary if key in row]
    if not rows:
        return ""
    lines = []
    for verdict, said in (("better", "Better than"), ("alike", "Not told apart from"),
                          ("worse", "Worse than")):  # fmt: skip
        named = [name(row) + _needed(found) for row, found in rows if found["verdict"] == verdict]
        lines += [f"{said} {other}: {', '.join(named)}."] if named else []
    comparisons = rows[0][1]["comparisons"]
    if not comparisons:
        return "\n".join(
            [*lines, "To be told apart takes two seeds or more, and scores that are defined."]
        )
    many = f"{comparisons} comparisons" if comparisons > 1 else "1 comparison"
    needed = any(found["seeds_needed"] for _, found in rows)
    seeds = "; in brackets, with how many the difference seen would show" if needed else ""
    return "\n".join([*lines, f"Corrected for {many} (Holm){seeds}."])


def _needed(found: Mapping[str, Any]) -> str:
    return "" if found["seeds_needed"] is None else f" ({found['seeds_needed']:,} seeds)"


def signed(paired: Mapping[str, float], metric: str) -> str:
    """A difference over seeds, as differences are written: −0.003 [−0.011, +0.004]."""
    from headcount.tasks.metrics import Difference

    low, high = paired["low"], paired["high"]
    return str(Difference(metric=metric, value=paired["mean"], low=low, high=high))
