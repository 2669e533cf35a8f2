"""What changed between two checkpoints, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headcount.views.tables.columns import table

if TYPE_CHECKING:
    from headcount.changes.correlation import Correlation
    from headcount.changes.measure import Transfer


def transfer_table(transfer: Transfer) -> Group:
    """A row for each layer; below it correlations with depth and importance, and recall."""
    parts: list[RenderableType] = [_layers(transfer), Text("\n".join(_correlations(transfer)))]
    if transfer.recall:
        parts += [Text(f"\n{_needed(transfer)}"), _recall(transfer)]
    return Group(*parts)


def _layers(transfer: Transfer) -> Table:
    rows = []
    for row in transfer.drift.layers:
        change = transfer.change.layers[row.stack][row.layer]
        rows.append(
            (
                f"{row.stack} {row.layer}",
                _number(row.mean, 4, row.mean_stderr),
                _number(row.max, 4, row.max_stderr),
                _number(row.hidden, 3, row.hidden_stderr),
                _number(row.relative, 3),
                "" if math.isnan(change) else f"{change:.3e}",
            )
        )
    columns = ["layer", "JS mean", "JS max", "hidden L2", "relative", "|Δ q,k,v|"]
    inputs = transfer.provenance["inputs"] or "given"
    title = f"{transfer.drift.n} inputs ({inputs}); ± one standard error"
    return table(columns, rows, title=title)


def _correlations(transfer: Transfer) -> Iterator[str]:
    for stack, trends in transfer.trends().items():
        known = [
            f"{name} {trend.spearman:+.2f}"
            for name, trend in trends.items()
            if not math.isnan(trend.spearman)
        ]
        if known:
            yield f"{stack}: Spearman correlation of depth with {', '.join(known)}"
    for stack, value in transfer.change.spread.items():
        if stack != "all" or len(transfer.layout.stacks) > 1:
            yield f"{stack}: weight change of layers spreads over {100 * value:.1f} % of their mean"
    for name, correlation in transfer.correlations.items():
        yield f"drift and importance on {name}: {_correlation(correlation)}"


def _correlation(line: Correlation) -> str:
    if math.isnan(line.pearson):
        return "no correlation, one of them does not vary"
    return (
        f"r = {line.pearson:+.3f} [{line.low:+.3f}, {line.high:+.3f}], Spearman "
        f"{line.spearman:+.3f} [{line.spearman_low:+.3f}, {line.spearman_high:+.3f}], "
        f"{line.n} heads; importance = {line.slope:.4g} · drift {line.intercept:+.4g}"
    )


def _recall(transfer: Transfer) -> Table:
    rows = [
        (f"{100 * at:.0f} %", kept.kept, f"{kept.value:.3f}", f"{kept.chance:.3f}", f"{kept.p:.2g}")
        for at, kept in transfer.recall.items()
    ]
    task = transfer.ranked[1].task
    return table([f"{task} at least", "heads kept", "recall", "chance", "p of chance"], rows)


def _needed(transfer: Transfer) -> str:
    task = transfer.ranked[0]
    first = next(iter(transfer.recall.values()))
    return (
        f"Of the {first.needed} of {first.heads} heads that {task.task} needs for "
        f"{100 * transfer.provenance['recall_share']:.0f} % of its {task.metric}, the share kept:"
    )


def _number(value: float, digits: int, error: float = math.nan) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.{digits}f}" + ("" if math.isnan(error) else f" ± {error:.{digits}f}")
