"""Pruned models as people read them: the tables of `prune`, `curve`, `compare` and `sweep`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from headcount.base.names import split_words
from headcount.base.text import printable
from headcount.heads import Mask
from headcount.repair.repairs import done_words
from headcount.runs.prune_result import PruneResult
from headcount.tasks.metrics import Difference
from headcount.views.tables.amounts import Row, interval, parameters, scored
from headcount.views.tables.columns import Cells, table

if TYPE_CHECKING:
    from headcount.studies.points import StudyResult
    from headcount.studies.sweep import Sweep

BARS = "▁▂▃▄▅▆▇█"
COLOURS = ("blue", "dark_orange", "green", "magenta", "yellow", "cyan")
VERDICTS = {
    "better": "Better than",
    "alike": "No measurable difference from",
    "worse": "Worse than",
}


def prune_table(result: PruneResult) -> Table:
    """All heads, the pruned model and random heads of the same number."""
    heads, sizes, scores = result.heads, result.parameters, result.scores
    name = ", ".join([result.method, *done_words([step.name for step in result.repair])])
    before, after = (
        [label, str(count), kept, "" if size is None else parameters(size)]
        for label, count, kept, size in (
            ("all heads", heads.before, "", sizes and sizes.before),
            (name, heads.after, heads.kept, sizes and sizes.after),
        )
    )
    rows: list[Cells] = [before, after]
    columns = ["", "heads", "kept per layer", "parameters"]
    if scores is not None:
        columns += [scores.metric, "95 % interval", "from all heads", "n"]
        for row, score, lost in ((before, scores.before, ""), (after, scores.after, scores.lost)):
            row += [scored(score.score), interval(vars(score)), lost, str(score.n)]
    if scores is not None and scores.free is not None:
        free = scores.free
        cells = [f"{result.method}, layers free to differ", str(heads.after), free.kept, ""]
        cells += [scored(free.score.score), interval(vars(free.score)), ""]
        rows.append([*cells, str(free.score.n)])
        text = f"As many heads in every layer against layers free to differ: {free.lost}."
        result = replace(result, rows_text=f"{text} {result.rows_text}".strip())
    if scores is not None and scores.random is not None:
        random = scores.random
        spread = f"{scored(random.worst)} to {scored(random.best)}"
        label = f"random, mean of {random.draws}"
        rows.append((label, str(heads.after), "", "", scored(random.mean), spread, "", ""))
    return _captioned(table(columns, rows), result.rows_text)


def removed_table(mask: Mask, sizes: Mapping[str, int], folder: Path) -> Table:
    """Heads that were removed, with the parameters `before` and `after`."""
    rows = [
        ("heads", f"{len(mask.layout)} -> {len(mask)}"),
        ("kept per layer", mask.pattern),
        ("parameters", f"{parameters(sizes['before'])} -> {parameters(sizes['after'])}"),
        ("folder", folder),
    ]
    return table(["what", "result"], rows)


def curve_table(curve: StudyResult) -> Group:
    """A row for every method and ratio, and a small chart below."""
    full, about, summary = curve.full, curve.about, curve.summary()
    heads = sum(sum(stack["heads"]) for stack in about["layout"].values())
    rows: list[Cells] = [("all heads", "0", heads, 1, scored(full["score"]), "", "", "100.0 %", "")]
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
    title = f"{about['task']} {split_words(about['split'])}, {curve.metric}, n = {full['n']}"
    tokens = about.get("tokens")
    calibrated = f"{about['samples']} rows" if tokens is None else f"{tokens:,} tokens"
    given = about.get("calibration") is not None
    data = (
        f"Calibration data: up to {calibrated} of "
        f"{'those that were given' if given else about['looked_at']}; "
        f"scores: {split_words(about['split'], full['n'])}."
    )
    tests = verdicts(summary, "random", lambda row: f"{row['method']} at {row['ratio']:g}")
    built = table([*columns, "from all heads"], rows, title=title)
    return Group(_captioned(built, f"{data}\n{tests}".strip()), chart(full["score"], summary))


def compare_table(comparison: StudyResult) -> Table:
    """A row for every method."""
    full, about, summary = comparison.full, comparison.about, comparison.summary()
    score = (scored(full["score"]), interval(full), *[""] * 7)
    rows: list[Cells] = [("all heads, as given", "", "", *score)]
    for row in summary:
        budget, random = row["budget"], row.get("against_random")
        trained = row.get("against_all_heads")
        rows.append(
            (
                row["method"],
                str(row["kept"]),
                str(row["seeds"]),
                scored(row["mean"]),
                interval(row),
                "" if random is None else f"{random['mean']:+.4f}",
                "" if random is None else interval(random),
                "" if random is None else f"{random['p_corrected']:.3g}",
                row["lost"],
                "" if trained is None else signed(trained, comparison.metric),
                f"{budget['epochs']:g}",
                str(budget["examples_measured"]),
            )
        )
    columns = ["method", "kept", "seeds", "mean", "95 % interval", "against random"]
    columns += ["95 % interval ", "p, corrected", "from the given model", "from all-heads"]
    columns += ["epochs", "rows measured"]
    title = f"{about['task']} {split_words(about['split'])}, {comparison.metric}, n = {full['n']}, "
    title += f"{100 * about['ratio']:g} % of the heads removed"
    tests = [
        verdicts(summary, other, lambda row: row["method"]) for other in ("random", "all-heads")
    ]
    return _captioned(table(columns, rows, title=title), "\n".join(filter(None, tests)))


def sweep_table(sweep: Sweep) -> Table:
    """A row for every value."""
    full, about, summary = sweep.full, sweep.about, sweep.summary()
    over = str(about["over"]).replace("_", "-")
    score = (scored(full["score"]), interval(full), "100.0 %")
    rows: list[Cells] = [("all heads", "", "", "", "", *score, "", "")]
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
    columns = [over, "seeds", "kept", "sparsity", "95 % interval", sweep.metric, "95 % interval "]
    columns += ["relative", "from all heads", "all gates closed"]
    title = f"{about['method']} on {about['task']} {split_words(about['split'])}, n = {full['n']}"
    lines = [
        f"Spearman correlation of {over} and {name}: "
        + (
            f"undefined, it is the same in all {trend['n']} runs"
            if trend["rho"] != trend["rho"]
            else f"{trend['rho']:+.3f}, p = {trend['p']:.3g}, {trend['n']} runs"
        )
        for name, trend in sweep.trends().items()
    ]
    lines += [verdicts(summary, "all heads", lambda row: f"{over} {row['value']:g}")]
    return _captioned(table(columns, rows, title=title), "\n".join(filter(None, lines)))


def _captioned(built: Table, text: str) -> Table:
    built.caption, built.caption_justify = text or None, "left"
    return built


def verdicts(summary: Sequence[Row], other: str, name: Callable[[Row], str]) -> str:
    """Tests of rows against others: "random", "all-heads" or "all heads"; "" without any."""
    key = f"against_{other.replace(' ', '_').replace('-', '_')}"
    rows = [(row, row[key]) for row in summary if key in row]
    if not rows:
        return ""
    comparisons = rows[0][1]["comparisons"]
    if not comparisons:
        return f"Not tested against {other}: that takes two seeds, and scores that are defined."
    lines = []
    for verdict, words in VERDICTS.items():
        named = [
            name(row) + (f" ({test['seeds_needed']:,} seeds)" if test["seeds_needed"] else "")
            for row, test in rows
            if test["verdict"] == verdict
        ]
        lines += [f"{words} {other}: {', '.join(named)}."] if named else []
    many = f"{comparisons} comparisons" if comparisons > 1 else "1 comparison"
    needed = any(test["seeds_needed"] for _, test in rows)
    seeds = "; in brackets, the seeds it would take to show this difference" if needed else ""
    return "\n".join([*lines, f"Corrected for {many} (Holm){seeds}."])


def signed(paired: Mapping[str, float], metric: str) -> str:
    """A difference over seeds, as differences are written: −0.003 [−0.011, +0.004]."""
    low, high = paired["low"], paired["high"]
    return str(Difference(metric=metric, value=paired["mean"], low=low, high=high))


def bars(values: Sequence[float | None], low: float, high: float) -> str:
    """Numbers as bars between two ends; a blank for a missing one.

    >>> bars([0.0, 0.5, 1.0, None], 0.0, 1.0)
    '▁▅█ '
    """
    span, last = high - low or 1.0, len(BARS) - 1
    shares = [None if v is None or v != v else (v - low) / span for v in values]
    return "".join(" " if s is None else BARS[round(min(max(s, 0), 1) * last)] for s in shares)


def chart(full: float | None, summary: Sequence[Row]) -> Group:
    """A line of bars for each method: its mean score at each ratio, all on one scale."""
    ratios = sorted({row["ratio"] for row in summary})
    scores = [row["mean"] for row in summary if row["mean"] == row["mean"]]
    scores += [] if full is None else [full]
    if not scores or not ratios:
        return Group()
    low, high = min(scores), max(scores)
    names = list(dict.fromkeys(row["method"] for row in summary))
    width = max(map(len, names))
    span = f"{100 * ratios[0]:g} % to {100 * ratios[-1]:g} %"
    scale = f"score from {scored(low)} ▁ to {scored(high)} █, heads removed from {span}"
    lines = [Text(f"{'':{width}}  {scale}")]
    for number, name in enumerate(names):
        means = {row["ratio"]: row["mean"] for row in summary if row["method"] == name}
        line = Text(f"{printable(name):{width}}  ")
        drawn = bars([means.get(ratio) for ratio in ratios], low, high)
        line.append("".join(2 * bar for bar in drawn), style=COLOURS[number % len(COLOURS)])
        lines.append(line)
    return Group(*lines)
