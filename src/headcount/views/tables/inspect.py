"""The heads of a model and what they cost, for people: `headcount inspect`."""

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
    from headcount.costs.serving import ServingCost


def cost_table(cost: Cost) -> Group:
    """The summary, then one line for each attention module, then the totals."""
    lines = [Text(line) for line in summary(cost)]
    built = Group(*lines, FittedTable(columns_of(cost), section=len(cost.sites)))
    return built if cost.left is None else Group(built, kept_grid(cost.left, "Heads that are left"))


def summary(cost: Cost) -> Iterator[str]:
    """Size, layout, and the share of the heads in it."""
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
    if cost.serving is not None:
        yield from serving(cost.serving)


def serving(taken: ServingCost) -> Iterator[str]:
    """What serving takes, what could be saved of it at most, and whether that is worth it."""
    users = f"{taken.batch} user{'s' * (taken.batch != 1)} of {taken.context} tokens"
    yield ""
    yield (
        f"For {users}: {amount(taken.cache, 'B')} of cache and {amount(taken.weights_read, 'B')} "
        f"of weights are read for a token; the cache is {percent(taken.share)} of it"
    )
    for name, saving in taken.most.items():
        yield (
            f"  {name}: at most {percent(saving.weights)} of the weights, {percent(saving.cache)} "
            f"of the cache, {percent(saving.read)} of the bytes read"
        )
    yield taken.verdict


def columns_of(cost: Cost) -> list[Column]:
    """The columns that tell something about this model: each site, all heads, the whole model."""

    def column(
        title: str, weight: int, cell: Callable[[SiteCost], str], heads: str = "", model: str = ""
    ) -> Column:
        cells = [*(cell(site) for site in cost.sites), heads, model]
        left = title in ("layer", "module")
        return Column(title=title, weight=weight, cells=cells, left=left)

    def layer(item: SiteCost) -> str:
        return f"{item.site.stack} {item.site.layer}"

    def memory(size: float | None) -> str:
        return amount(size, "B")

    size, attention = parameters(cost.parameters), parameters(cost.attention_parameters)
    bytes_of_heads, bytes_of_model = memory(cost.attention_memory), memory(cost.memory)
    flops_of_heads, flops_of_model = amount(cost.attention_flops), amount(cost.flops)
    columns = [
        column("layer", 9, layer, "all heads", "whole model"),
        column("module", 2, lambda item: item.site.path),
        column("heads", 8, lambda item: str(item.site.heads), str(len(cost.layout))),
        column("KV heads", 5, lambda item: str(item.site.groups)),
        column("width", 1, lambda item: str(item.site.head_dim)),
        column("runs", 4, lambda item: str(item.uses)),
        column("parameters", 6, lambda item: parameters(item.parameters), attention, size),
        column("memory", 3, lambda item: memory(item.memory), bytes_of_heads, bytes_of_model),
        column("FLOPs", 7, lambda item: amount(item.flops), flops_of_heads, flops_of_model),
        column("cache/token", 0, lambda item: memory(item.cache or None)),
    ]
    same = {
        "KV heads": all(item.site.groups == item.site.heads for item in cost.sites),
        "runs": all(item.uses == 1 for item in cost.sites),
        "cache/token": not any(item.cache for item in cost.sites),
    }
    return [column for column in columns if not same.get(column.title)]
