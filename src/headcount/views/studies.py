"""Studies, drawn: score against the share of heads removed, against a swept value, in a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.views.figures import (
    GRID,
    Row,
    colour_bar,
    colour_of,
    draw_band,
    draw_full,
    explain_band,
    head_grid,
    need_matplotlib,
    new_figure,
    relative_axis,
    save_both,
    styled,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headcount.heads import Scores
    from headcount.studies.curve import Curve
    from headcount.studies.sweep import Sweep

DECADE = 10.0
"""Values that span more than this are drawn on a logarithmic axis."""
BOUND = "#b03030"


def curve_figure(summary: Sequence[Row], full: Row, *, title: str, metric: str) -> Figure:
    """A line of means for each method, its best-to-worst band, and the unpruned model's line.

    The right axis is relative to the full model, whose interval is the grey band. Lines begin at 0,
    with the full model.
    """
    with styled():
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        draw_full(axes, full)
        for number, method in enumerate(dict.fromkeys(row["method"] for row in summary)):
            rows = sorted(
                (row for row in summary if row["method"] == method), key=lambda row: row["ratio"]
            )
            x = [0, *(100 * row["ratio"] for row in rows)]
            mean, worst, best = (
                [full["score"], *(row[name] for row in rows)] for name in ("mean", "worst", "best")
            )
            label = f"{method}, mean of {rows[0]['seeds']}"
            draw_band(axes, x, mean, worst, best, colour=colour_of(number), label=label)
        axes.set_xlabel("heads removed, %")
        axes.set_title(title)
        _finish(axes, summary, full, metric)
    return figure


def _finish(axes: Axes, summary: Sequence[Row], full: Row, metric: str) -> None:
    """The scale of a score, its legend, and the scale relative to the full model."""
    axes.set_ylabel(metric)
    axes.grid(axis="y", color=GRID, lw=0.6)
    if any(row["seeds"] > 1 for row in summary):
        explain_band(axes)
    axes.legend(frameon=False)
    if full["score"] > 0:
        relative_axis(axes, full["score"])


def frequency_figure(frequency: Mapping[float, Scores], *, title: str) -> Figure:
    """For each ratio and stack, layers × heads: how often a head was pruned, from 0 to 1."""
    ratios = list(frequency)
    layout = frequency[ratios[0]].layout
    stacks = [stack.name for stack in layout.stacks]
    columns = min(5, len(ratios))
    lines = -(-len(ratios) // columns)
    shapes = [head_grid(layout, frequency[ratios[0]].values, stack).shape for stack in stacks]
    height = sum(min(1.7 * layers / heads, 4) + 0.55 for layers, heads in shapes)
    with styled():
        figure = new_figure(2.1 * columns + 0.7, lines * height + 0.4)
        figure.suptitle(title, x=0.01, ha="left")
        panels = figure.subplots(len(stacks) * lines, columns, squeeze=False)
        for row, stack in enumerate(stacks):
            for number, ratio in enumerate(ratios):
                line, column = row * lines + number // columns, number % columns
                axes = panels[line, column]
                grid = head_grid(layout, frequency[ratio].values, stack)
                image = axes.imshow(grid, cmap="viridis", vmin=0, vmax=1)
                prefix = f"{stack}, " if len(stacks) > 1 else ""
                axes.set_title(f"{prefix}{100 * ratio:g} %", fontsize=8)
                whole_ticks(axes, 6)
                axes.set_xlabel("head" if line == len(panels) - 1 else "", fontsize=7)
                axes.set_ylabel("" if column else "layer", fontsize=7)
                if row == 0 and number == columns - 1:
                    colour_bar(image, axes, "share of trials")
        for axes in panels.flat:
            axes.set_visible(bool(axes.images))
    return figure


def save_curve(curve: Curve, out: Path, title: str) -> None:
    """A curve's figures in its folder: curve, and how often each head goes where it clustered."""
    figure = curve_figure(curve.summary(), curve.full, title=title, metric=curve.metric)
    save_both(figure, out / "curve")
    if curve.frequency:
        maps = frequency_figure(curve.frequency, title="How often clustering prunes each head")
        save_both(maps, out / "frequency")


def sweep_figure(
    summary: Sequence[Row], full: Row, *, over: str, title: str, metric: str
) -> Figure:
    """Means over seeds with worst-to-best bands (Figs 6, 7 of AutoAttention).

    Heads removed above, the score below. A cross marks the values at which all gates closed in some
    run, and in how many.
    """
    rows = sorted(summary, key=lambda row: row["value"])
    values = [row["value"] for row in rows]
    with styled():
        figure = new_figure(6.4, 5.6)
        above, below = figure.subplots(2, 1, sharex=True)
        above.set_ylabel("heads removed, %")
        above.set_ylim(-3, 103)
        above.set_title(title)
        above.grid(axis="y", color=GRID, lw=0.6)
        draw_full(below, full)
        label = f"mean of {rows[0]['seeds']}"
        for axes, name, scale, number in ((above, "sparsity", 100, 0), (below, "score", 1, 1)):
            mean, worst, best = (
                [scale * row[name][end] for row in rows] for end in ("mean", "worst", "best")
            )
            colour = colour_of(number)
            draw_band(axes, values, mean, worst, best, colour=colour, label=label)
        _mark_closed(above, below, [row for row in rows if row["all_closed"]])
        _finish(below, rows, full, metric)
        below.set_xlabel(over)
        if logarithmic(values):
            below.set_xscale("log")
        below.set_xticks(values, labels=[f"{value:g}" for value in values])
        below.set_xticks([], minor=True)
    return figure


def logarithmic(values: Sequence[float]) -> bool:
    """Whether values are better compared by their ratios than by their differences."""
    return min(values) > 0 and max(values) / min(values) > DECADE


def _mark_closed(above: Axes, below: Axes, closed: Sequence[Row]) -> None:
    x = [row["value"] for row in closed]
    for axes, name, scale in ((above, "sparsity", 100), (below, "score", 1)) if closed else ():
        y = [scale * row[name]["mean"] for row in closed]
        axes.plot(x, y, "x", color="#26303c", ms=8, label="all gates closed in some runs")
    for row in closed:
        point = (row["value"], 100 * row["sparsity"]["mean"])
        text = f"{row['all_closed']} of {row['seeds']} closed"
        offset = {"textcoords": "offset points", "xytext": (-8, -2)}
        above.annotate(text, point, **offset, ha="right", fontsize=7)


def save_sweep(sweep: Sweep, out: Path, title: str) -> None:
    """A sweep's figure in its folder."""
    over = str(sweep.about["over"]).replace("_", "-")
    figure = sweep_figure(sweep.summary(), sweep.full, over=over, title=title, metric=sweep.metric)
    save_both(figure, out / "sweep")


def search_figure(data: Mapping[str, Any]) -> Figure:
    """Score against heads kept: every model that was tried, the bound, and the selected one.

    Models that were tried are scored on some of the selection set, the selected one (the star,
    beside random heads of its number) on the held-out set, so their scores are not comparable. Each
    is drawn as far above or below the line of all heads as it is on its rows. The intervals are
    those of the differences; the largest loss that is allowed is the dotted line.
    """
    need_matplotlib()
    from matplotlib.ticker import MaxNLocator

    with styled():
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        full = data["selection"]
        draw_full(axes, full)
        if data.get("least") is not None:
            label = f"{data['bound']} {'less' if data['higher_is_better'] else 'more'}"
            axes.axhline(data["least"], color=BOUND, lw=1, ls=":", label=label)
        for number, method in enumerate(dict.fromkeys(row["method"] for row in data["tried"])):
            rows = [row for row in data["tried"] if row["method"] == method]
            label = f"{method}, selection set"
            _draw_models(axes, full["score"], rows, "o", 4, colour_of(number), label)
        if data["score"] is not None:
            label = "selected model, held-out set"
            _draw_models(axes, full["score"], [data], "*", 12, BOUND, label)
            random = [
                full["score"] + score - data["full"]
                for score in (data["random"] or {}).get("scores", [])
            ]
            if random:
                x = [data["kept"]] * len(random)
                axes.plot(x, random, "x", color="#777777", label="random heads, held-out set")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(f"heads kept, of {data['heads']}")
        axes.set_ylabel(data["metric"])
        axes.set_title(f"{Path(str(data['model'])).name} on {data['task']}")
        axes.grid(axis="y", color=GRID, lw=0.6)
        axes.legend(frameon=False, fontsize=7, loc="lower right")
    return figure


def _draw_models(
    axes: Axes, level: float, rows: Sequence[Row], marker: str, size: float, colour: str, label: str
) -> None:
    """Differences from all heads with their intervals, where there are any, around a level."""
    losses = [row["difference"] for row in rows]
    y = [level + loss["value"] for loss in losses]
    ends = [
        [0.0 if loss[end] is None else abs(loss[end] - loss["value"]) for loss in losses]
        for end in ("low", "high")
    ]
    x = [row["kept"] for row in rows]
    axes.errorbar(x, y, yerr=ends, fmt=marker, ms=size, lw=1, color=colour, label=label)


def save_search(data: Mapping[str, object], out: Path) -> None:
    """search.png and search.svg in the folder of the search."""
    if data["tried"]:
        save_both(search_figure(data), out / "search")
