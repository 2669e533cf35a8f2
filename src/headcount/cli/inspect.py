"""`headcount inspect MODEL`: which heads a model has and what they cost, from its config alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich import box
from rich.console import Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from headcount.cli.amounts import amount, parameters, percent
from headcount.cli.common import Json, emit, say, stdout

if TYPE_CHECKING:
    from headcount.models.cost import Cost, SiteCost

Length = Annotated[
    int | None, Parameter(help="Tokens that the FLOPs are counted for; 128, or what fits.")
]


def inspect(model: str, *, length: Length = None, as_json: Json = False) -> None:
    """Show which heads a model has: stacks, layers, heads, and what each attention module costs.

    Needs the config only, not the weights. FLOPs count every matrix product of one example, two
    for each multiply-add; memory is that of the parameters in the dtype the model was saved in.

    Parameters
    ----------
    model
        A model folder, a config.json, or a name on the hub.
    """
    from headcount.models.cost import cost_of, read_config

    found = cost_of(*read_config(model), length=length)
    emit(to_json(model, found), as_json=as_json, table=page(found))
    if found.uncounted:
        say(f"headcount: {found.uncounted}")


def to_json(name: str, cost: Cost) -> dict[str, Any]:
    """Everything that is known, as plain values."""
    return {
        "model": name,
        "class": cost.model,
        "model_type": cost.model_type,
        "dtype": cost.dtype,
        "length": cost.length,
        "heads": len(cost.layout),
        "heads_before": cost.heads_before,
        "layout": cost.layout,
        "parameters": cost.parameters,
        "memory": cost.memory,
        "flops": cost.flops,
        "flops_of": cost.counted,
        "attention": {
            "parameters": cost.attention_parameters,
            "memory": cost.attention_memory,
            "flops": cost.attention_flops,
            "share_of_flops": cost.share,
            "ceiling": cost.ceiling,
        },
        "modules": [
            {
                "path": item.site.path,
                "stack": item.site.stack,
                "layer": item.site.layer,
                "heads": item.site.heads,
                "key_value_heads": item.site.groups,
                "head_width": item.site.head_dim,
                "uses": item.uses,
                "parameters": item.parameters,
                "memory": item.memory,
                "flops": item.flops,
                "cache_per_token": item.cache,
            }
            for item in cost.sites
        ],
    }


def page(cost: Cost) -> Group:
    """The summary, then one line for each attention module."""
    width = stdout().width if sys.stdout.isatty() else None
    columns = columns_of(cost)
    shown = fitting(cost, columns, width)
    lines = [Text(line) for line in summary(cost)]
    hidden = [column.title for column in columns if column not in shown]
    note = [Text(f"Too narrow to show: {', '.join(hidden)}")] if hidden else []
    return Group(*lines, modules(cost, shown), *note)


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
    if heads < cost.heads_before:
        yield f"pruned   {heads} of {cost.heads_before} heads are left"
    yield ""
    yield (
        f"All heads: {parameters(cost.attention_parameters)} parameters "
        f"({percent(cost.attention_parameters / cost.parameters)} of the model's), "
        f"{amount(cost.attention_memory, 'B')}"
    )
    if cost.flops:
        of = "the model's" if cost.counted == cost.model else f"{cost.counted}'s"
        yield (
            f"At {cost.length} tokens: {amount(cost.attention_flops)}FLOPs ({percent(cost.share)} "
            f"of {of} {amount(cost.flops)}FLOPs)"
        )
    if cost.ceiling:
        yield f"With every head removed it could be {cost.ceiling:.2f} x as fast, at best"
    cache = sum(item.cache for item in cost.sites if item.site.stack == "decoder")
    if cache:
        yield f"Key-value cache: {amount(cache, 'B')} for each token"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the table of attention modules."""

    title: str
    weight: int
    """What is light goes first when the terminal is narrow."""
    cell: Callable[[SiteCost], str]
    total: str = ""
    """Over all attention modules."""
    model: str = ""
    """Over the whole model."""


def columns_of(cost: Cost) -> list[Column]:
    """The columns that tell something about this model."""
    grouped = any(item.site.groups != item.site.heads for item in cost.sites)
    shared = any(item.uses != 1 for item in cost.sites)
    cached = any(item.cache for item in cost.sites)
    found = [
        Column(title="layer", weight=9, cell=lambda item: f"{item.site.stack} {item.site.layer}",
               total="all heads", model="whole model"),
        Column(title="module", weight=2, cell=lambda item: item.site.path),
        Column(title="heads", weight=8, cell=lambda item: str(item.site.heads),
               total=str(len(cost.layout))),
        Column(title="KV heads", weight=5, cell=lambda item: str(item.site.groups)),
        Column(title="width", weight=1, cell=lambda item: str(item.site.head_dim)),
        Column(title="runs", weight=4, cell=lambda item: str(item.uses)),
        Column(title="parameters", weight=6, cell=lambda item: parameters(item.parameters),
               total=parameters(cost.attention_parameters), model=parameters(cost.parameters)),
        Column(title="memory", weight=3, cell=lambda item: amount(item.memory, "B"),
               total=amount(cost.attention_memory, "B"), model=amount(cost.memory, "B")),
        Column(title="FLOPs", weight=7, cell=lambda item: amount(item.flops),
               total=amount(cost.attention_flops), model=amount(cost.flops)),
        Column(title="cache/token", weight=0, cell=lambda item: amount(item.cache or None, "B")),
    ]  # fmt: skip
    idle = {"KV heads": grouped, "runs": shared, "cache/token": cached}
    return [column for column in found if idle.get(column.title, True)]


def fitting(cost: Cost, columns: list[Column], width: int | None) -> list[Column]:
    """The columns whose table fits into `width`: what does not is left out, not broken."""
    console = stdout()
    unlimited = console.options.update(width=10_000)
    columns = list(columns)
    while width is not None and len(columns) > 2:
        if Measurement.get(console, unlimited, modules(cost, columns)).maximum <= width:
            break
        columns.remove(min(columns, key=lambda column: column.weight))
    return columns


def modules(cost: Cost, columns: list[Column]) -> Table:
    """The table of attention modules, with the totals under it."""
    built = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        left = column.title in ("layer", "module")
        built.add_column(column.title, justify="left" if left else "right", no_wrap=True)
    for item in cost.sites:
        built.add_row(*(column.cell(item) for column in columns))
    built.add_section()
    built.add_row(*(column.total for column in columns))
    built.add_row(*(column.model for column in columns))
    return built
