"""What `headcount inspect` found, as a page for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from headcount.views.tables.amounts import amount, parameters, percent
from headcount.views.tables.columns import Column, FittedTable
from headcount.views.tables.grid import kept_grid

if TYPE_CHECKING:
    from headcount.costs.cost import Cost, SiteCost


def page(cost: Cost) -> Group:
    """The summary, then one line for each attention module, then the totals."""
    lines = [Text(line) for line in summary(cost)]
    shown = Group(*lines, FittedTable(columns_of(cost), section=len(cost.sites)))
    return shown if cost.left is None else Group(shown, kept_grid(cost.left, "Heads that are left"))


def summary(cost: Cost) -> Iterator[str]:
    """What a newcomer wants to know first."""
    size = amount(cost.memory, "B")
    yield f"{cost.model}: {parameters(cost.parameters)} parameters, {size} in {cost.dtype}"
    yield ""
    heads = len(cost.layout)
    for stack in cost.layout.stacks:
        widths = {item.site.head_dim for item in cost.sites if item.site.stack == stack.name}
        wide = " or ".join(map(str, sorted(widths)))
        yield f"{stack.name:8} {stack}  ({stack.total} heads, {wide} wide)"
    for name in cost.layout.unread:
        yield f"not understood: {name}: its heads are not counted and stay as they are"
    if heads < cost.heads_before:
        yield f"pruned   {heads} of {cost.heads_before} heads are left"
    yield ""
    yield (
        f"All heads: {parameters(cost.attention_parameters)} parameters "
        f"({percent(cost.attention_parameters / cost.parameters)} of the model's), "
        f"{amount(cost.attention_memory, 'B')}"
    )
    if cost.flops:
        at = "At" if cost.reads == f"{cost.length} tokens" else "For"
        of = "the model's" if cost.counted == cost.model else f"{cost.counted}'s"
        yield (
            f"{at} {cost.reads}: {amount(cost.attention_flops)}FLOPs ({percent(cost.share)} of "
            f"{of} {amount(cost.flops)}FLOPs)"
        )
    if cost.ceiling:
        yield f"With every head removed it could be {cost.ceiling:.2f} x as fast, at best"
    cache = sum(item.cache for item in cost.sites if item.site.stack == "decoder")
    if cache:
        yield f"Key-value cache: {amount(cache, 'B')} for each token"


def columns_of(cost: Cost) -> list[Column]:
    """The columns that tell something about this model."""

    def column(
        title: str,
        weight: int,
        cell: Callable[[SiteCost], str],
        heads: str = "",
        model: str = "",
        *,
        left: bool = False,
    ) -> Column:
        cells = [*(cell(item) for item in cost.sites), heads, model]
        return Column(title=title, weight=weight, cells=cells, left=left)

    sites = [item.site for item in cost.sites]
    needless = set()
    if all(site.groups == site.heads for site in sites):
        needless.add("KV heads")
    if all(item.uses == 1 for item in cost.sites):
        needless.add("runs")
    if not any(item.cache for item in cost.sites):
        needless.add("cache/token")
    found = [
        column("layer", 9, lambda item: f"{item.site.stack} {item.site.layer}",
               "all heads", "whole model", left=True),
        column("module", 2, lambda item: item.site.path, left=True),
        column("heads", 8, lambda item: str(item.site.heads), str(len(cost.layout))),
        column("KV heads", 5, lambda item: str(item.site.groups)),
        column("width", 1, lambda item: str(item.site.head_dim)),
        column("runs", 4, lambda item: str(item.uses)),
        column("parameters", 6, lambda item: parameters(item.parameters),
               parameters(cost.attention_parameters), parameters(cost.parameters)),
        column("memory", 3, lambda item: amount(item.memory, "B"),
               amount(cost.attention_memory, "B"), amount(cost.memory, "B")),
        column("FLOPs", 7, lambda item: amount(item.flops),
               amount(cost.attention_flops), amount(cost.flops)),
        column("cache/token", 0, lambda item: amount(item.cache or None, "B")),
    ]  # fmt: skip
    return [column for column in found if column.title not in needless]
