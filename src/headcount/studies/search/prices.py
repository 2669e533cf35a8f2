"""What each layer costs by the heads it keeps: counted parameters and bytes, or measured time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedModel

from headcount.base.errors import UnsupportedError, UsageError
from headcount.costs.bench import time_removed
from headcount.costs.cost import cost
from headcount.heads import Head, Layout, Mask
from headcount.models.find import sites_of
from headcount.models.hooks import evaluating
from headcount.models.linear import has_bias, read_rows
from headcount.models.remove import remove
from headcount.pruning.counts import Place
from headcount.studies.search.bounds import CostBudget
from headcount.studies.search.bracket import layer_counts
from headcount.studies.search.ways import LayerChoice

POINTS = (0.0, 0.25, 0.5, 0.75)
"""Shares of a layer's heads at which its time is measured, beside all of them."""
Price = Callable[[Place, LayerChoice], float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Prices:
    """What a model costs: what is there whatever heads go, and each layer by what it keeps."""

    whole: float
    """The model with all heads."""
    fixed: float
    """The model without what the layers' prices count."""
    price: Price
    table: dict[str, dict[int, float]]
    """Where time was measured: kind of layer -> heads kept -> seconds of one layer."""


def cache_prices(model: PreTrainedModel) -> Prices:
    """Bytes of keys and values that are kept for each token; they go with whole groups only."""
    sites = {(one.site.stack, one.site.layer): one for one in cost(model).sites}
    whole = sum(site.cache for site in sites.values())
    if not whole:
        raise UsageError(
            f"{type(model).__name__} keeps no keys and values from token to token, so there is no "
            "cache to save: --max-cache is for decoders."
        )

    def price(layer: Place, way: LayerChoice) -> float:
        site = sites[layer]
        return site.cache * way.groups / site.site.groups if site.site.groups else 0.0

    return Prices(whole=whole, fixed=0.0, price=price, table={})


def parameter_prices(model: PreTrainedModel) -> Prices:
    """Parameters of the attention modules; a layer without heads has its output's bias left."""
    prices: dict[Place, tuple[float, float, float]] = {}
    for site in sites_of(model):
        by_head = by_group = 0.0
        for child, kind in site.projections:
            count = _size(model, f"{site.path}.{child}")
            if kind == "q":
                by_head += count / site.heads
            elif kind == "fused":
                site_cost = count / (site.heads + 2 * site.groups)
                by_head, by_group = by_head + site_cost, by_group + 2 * site_cost
            else:
                by_group += count / site.groups
        out = model.get_submodule(site.out)
        bias = _size(model, site.out) - site.heads * site.head_dim * _width(model, site.out)
        by_head += site.head_dim * _width(model, site.out)
        prices[site.stack, site.layer] = by_head, by_group, float(bias if has_bias(out) else 0)
    whole = float(model.num_parameters())

    def price(layer: Place, way: LayerChoice) -> float:
        by_head, by_group, bias = prices[layer]
        return by_head * len(way.heads) + by_group * way.groups + bias

    layers = sum(
        by_head * site.heads + by_group * site.groups + bias
        for site in sites_of(model)
        for by_head, by_group, bias in [prices[site.stack, site.layer]]
    )
    return Prices(whole=whole, fixed=whole - layers, price=price, table={})


def time_prices(
    model: PreTrainedModel, *, batch: int, length: int, rounds: int, seed: int
) -> Prices:
    """Seconds of one layer by how many heads it keeps, all layers of a kind cut alike.

    All layers of a kind lose the same number of heads at once, so that what one layer saves is
    seen as often as there are layers; the models run in turn with the whole one. Between measured
    numbers of heads the time is on a straight line.
    """
    layout = cost(model, length=length).layout
    kinds = _kinds(layout)
    removed, named = _cut_alike(model, layout, kinds)
    with evaluating(model):
        prices = time_removed(
            model, removed, batch=batch, length=length, rounds=rounds, masked=False, seed=seed
        )
    dense = prices.rows[0].seconds.median
    table: dict[str, dict[int, float]] = {kind: {} for kind in kinds}
    for row in prices.rows[1:]:
        kind, kept = named[row.name]
        # what one layer takes less than with all its heads
        table[kind][kept] = dense * (row.ratio.median - 1) / len(kinds[kind])
    for kind, places in kinds.items():
        table[kind][_shape(layout, places[0])[0]] = 0.0
    lines = {kind: _rising(points) for kind, points in table.items()}
    kind_of = {site: kind for kind, places in kinds.items() for site in places}
    least = {kind: seconds[0] for kind, (_, seconds) in lines.items()}

    def price(site: Place, way: LayerChoice) -> float:
        if site not in kind_of:
            return 0.0
        counts, seconds = lines[kind_of[site]]
        if len(way.heads) < counts[0]:
            return math.inf  # it cannot be emptied
        prices = np.interp(len(way.heads), counts, seconds)
        return float(prices) - least[kind_of[site]]

    fixed = dense + sum(least[kind] * len(places) for kind, places in kinds.items())
    return Prices(whole=dense, fixed=fixed, price=price, table=table)


def _cut_alike(
    model: PreTrainedModel, layout: Layout, kinds: dict[str, list[Place]]
) -> tuple[dict[str, tuple[Mask, PreTrainedModel]], dict[str, tuple[str, int]]]:
    """Models in which all layers of a kind keep the same number of heads; what their rows are."""
    removed: dict[str, tuple[Mask, PreTrainedModel]] = {}
    named: dict[str, tuple[str, int]] = {}
    for kind, places in kinds.items():
        heads, groups = _shape(layout, places[0])
        ways = layer_counts(heads, groups)[:-1]
        near = {min(ways, key=lambda way: abs(way - share * heads)) for share in POINTS}
        for kept in sorted(near):
            mask = _alike(layout, places, kept)
            try:
                small = remove(model, mask).eval()
            except UnsupportedError:
                continue  # some layers cannot be emptied
            name = f"{kind} {kept}"
            removed[name], named[f"removed {name}"] = (mask, small), (kind, kept)
    if not removed:
        raise UnsupportedError(f"No heads of {type(model).__name__} could be taken out and timed.")
    return removed, named


def _rising(points: dict[int, float]) -> tuple[list[int], list[float]]:
    """Numbers of heads and their times against all heads, which do not fall: that is noise."""
    from sklearn.isotonic import isotonic_regression

    counts = sorted(points)
    seconds = isotonic_regression(np.array([points[count] for count in counts]))
    return counts, np.minimum(seconds, 0.0).tolist()  # fewer heads never take longer


def prices_of(
    budget: CostBudget, model: PreTrainedModel, *, batch: int, length: int, rounds: int, seed: int
) -> Prices:
    """The prices that a budget is spent by."""
    if budget.kind == "cache":
        return cache_prices(model)
    if budget.kind == "parameters":
        return parameter_prices(model)
    return time_prices(model, batch=batch, length=length, rounds=rounds, seed=seed)


def _size(model: PreTrainedModel, path: str) -> int:
    return sum(parameter.numel() for parameter in model.get_submodule(path).parameters())


def _width(model: PreTrainedModel, path: str) -> int:
    return int(read_rows(model.get_submodule(path)).shape[1])


def _shape(layout: Layout, site: Place) -> tuple[int, int]:
    stack = layout[site[0]]
    return stack.heads[site[1]], stack.groups[site[1]]


def _kinds(layout: Layout) -> dict[str, list[Place]]:
    """Layers of one stack with as many heads, by a name."""
    prices: dict[str, list[Place]] = {}
    for stack, layer, heads in layout.layers():
        if heads:
            groups = layout[stack].groups[layer]
            prices.setdefault(f"{stack} {heads}/{groups}", []).append((stack, layer))
    return prices


def _alike(layout: Layout, places: list[Place], kept: int) -> Mask:
    """All heads but for these layers, which keep so many: the first groups, whole where it can."""
    dropped: list[Head] = []
    for stack, layer in places:
        heads, groups = _shape(layout, (stack, layer))
        size = heads // groups
        inside = max(
            (n for n in range(1, size + 1) if kept % n == 0 and kept // n <= groups), default=1
        )
        stay = {g * size + h for g in range(kept // inside) for h in range(inside)}
        dropped += [Head(stack, layer, index) for index in range(heads) if index not in stay]
    return Mask.full(layout).drop(dropped)
