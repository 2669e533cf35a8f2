"""Sweeps, drawn (Figs 6, 7 of AutoAttention): sparsity and score against the swept value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.views.curves import BAND, draw_full, explain_band
from headcount.views.figures import (
    COLOURS,
    STYLE,
    need_matplotlib,
    new_figure,
    relative_axis,
    save_both,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DECADE = 10.0
"""Values that span more than this are drawn on a logarithmic axis."""


def sweep_figure(
    summary: Sequence[Mapping[str, Any]],
    full: Mapping[str, Any],
    *,
    over: str,
    title: str,
    metric: str,
) -> Figure:
    """Means over seeds with their worst-to-best bands: heads removed above, the score below.

    The dashed line and grey band are the model with all heads and its interval. A cross marks the
    values at which all gates closed in some run, and in how many.
    """
    rows = sorted(summary, key=lambda row: row["value"])
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(6.4, 5.6)
        top, low = figure.subplots(2, 1, sharex=True)
        _band(top, rows, "sparsity", 100, COLOURS[0])
        top.set_ylabel("heads removed, %")
        top.set_ylim(-3, 103)
        top.set_title(title)
        draw_full(low, full)
        _band(low, rows, "score", 1, COLOURS[1], label=f"mean of {rows[0]['seeds']}")
        low.set_ylabel(metric)
        low.set_xlabel(over)
        _mark_closed(top, low, rows)
        explain_band(low, rows)
        low.legend(frameon=False)
        values = [row["value"] for row in rows]
        if logarithmic(values):
            low.set_xscale("log")
        low.set_xticks(values, labels=[f"{value:g}" for value in values])
        low.set_xticks([], minor=True)
        for axes in (top, low):
            axes.grid(axis="y", color="#e5e5e5", lw=0.6)
        if full["score"] > 0:
            relative_axis(low, full["score"])
    return figure


def logarithmic(values: Sequence[float]) -> bool:
    """Whether values are better told apart by their ratios than by their differences."""
    return min(values) > 0 and max(values) / min(values) > DECADE


def _band(
    axes: Any,
    rows: Sequence[Mapping[str, Any]],
    name: str,
    scale: float,
    colour: str,
    label: str | None = None,
) -> None:
    x = [row["value"] for row in rows]
    worst, mean, best = (
        [scale * row[name][which] for row in rows] for which in ("worst", "mean", "best")
    )
    axes.fill_between(x, worst, best, color=colour, alpha=BAND, lw=0)
    axes.plot(x, mean, ".-", color=colour, lw=1.4, label=label)


def _mark_closed(top: Any, low: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    closed = [row for row in rows if row["all_closed"]]
    if not closed:
        return
    for axes, name, scale in ((top, "sparsity", 100), (low, "score", 1)):
        y = [scale * row[name]["mean"] for row in closed]
        x = [row["value"] for row in closed]
        axes.plot(x, y, "x", color="#26303c", ms=8, label="all gates closed in some runs")
    for row in closed:
        top.annotate(
            f"{row['all_closed']} of {row['seeds']} closed",
            (row["value"], 100 * row["sparsity"]["mean"]),
            textcoords="offset points", xytext=(-8, -2), ha="right", fontsize=7,
        )  # fmt: skip


def save_figure(found: Any, out: Path, title: str) -> None:
    """A sweep's figure in its folder."""
    over = str(found.about["over"]).replace("_", "-")
    figure = sweep_figure(found.summary(), found.full, over=over, title=title, metric=found.metric)
    save_both(figure, out / "sweep")
