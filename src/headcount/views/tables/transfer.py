"""What changed between two checkpoints, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from headcount.views.tables.columns import table

if TYPE_CHECKING:
    from headcount.changes.correlation import Correlation
    from headcount.changes.measure import Transfer


def page(found: Transfer) -> Group:
    """A row for each layer; under it how drift goes with depth and importance, and recall."""
    parts: list[Any] = [_layers(found), Text("\n".join(_lines(found)))]
    if found.recall:
        parts += [Text(f"\n{_needed(found)}"), _recall(found)]
    return Group(*parts)


def _layers(found: Transfer) -> Any:
    rows = []
    for row in found.drift.layers:
        change = found.change.layers[row.stack][row.layer]
        rows.append(
            (
                f"{row.stack} {row.layer}",
                _with_error(row.mean, row.mean_stderr, 4),
                _with_error(row.max, row.max_stderr, 4),
                _with_error(row.hidden, row.hidden_stderr, 3),
                _number(row.relative, 3),
                "" if math.isnan(change) else f"{change:.3e}",
            )
        )
    columns = ["layer", "JS mean", "JS max", "hidden L2", "relative", "|Δ q,k,v|"]
    title = f"{found.drift.n} inputs ({found.made['inputs'] or 'given'}); ± one standard error"
    return table(columns, rows, title=title)


def _lines(found: Transfer) -> Iterator[str]:
    for stack, trends in found.trends().items():
        said = [
            f"{name} {each.spearman:+.2f}"
            for name, each in trends.items()
            if not math.isnan(each.spearman)
        ]
        if said:
            yield f"{stack}: Spearman of depth with {', '.join(said)}"
    for stack, value in found.change.spread.items():
        if stack != "all" or len(found.layout.stacks) > 1:
            yield f"{stack}: weight change of layers spreads over {100 * value:.1f} % of their mean"
    for name, line in found.correlations.items():
        yield f"drift and importance on {name}: {_correlation(line)}"


def _correlation(line: Correlation) -> str:
    if math.isnan(line.pearson):
        return "no correlation, one of them does not vary"
    return (
        f"r = {line.pearson:+.3f} [{line.low:+.3f}, {line.high:+.3f}], Spearman "
        f"{line.spearman:+.3f} [{line.spearman_low:+.3f}, {line.spearman_high:+.3f}], "
        f"{line.n} heads; importance = {line.slope:.4g} · drift {line.intercept:+.4g}"
    )


def _recall(found: Transfer) -> Any:
    pretraining = found.ranked[1]
    rows = [
        (f"{100 * x:.0f} %", each.kept, f"{each.value:.3f}", f"{each.chance:.3f}", f"{each.p:.2g}")
        for x, each in found.recall.items()
    ]
    columns = [f"{pretraining.task} at least", "heads kept", "recall", "chance", "p of chance"]
    return table(columns, rows)


def _needed(found: Transfer) -> str:
    task = found.ranked[0]
    first = next(iter(found.recall.values()))
    return (
        f"Of the {first.needed} of {first.heads} heads that {task.task} needs for "
        f"{100 * found.made['recall_share']:.0f} % of its {task.metric}, the share kept:"
    )


def _with_error(value: float, error: float, digits: int) -> str:
    if math.isnan(value):
        return ""
    return _number(value, digits) + ("" if math.isnan(error) else f" ± {error:.{digits}f}")


def _number(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"
