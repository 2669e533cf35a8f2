"""How far fine-tuning moved each head's query, key and value weights.

On the weak link between importance and prunability (EMNLP 2020), §3.3, Fig. 2.

    change = weight_change(pretrained, finetuned)
    change.total[Head("encoder", 3, 1)], change.spread["encoder"]

Both may be pruned models; where only the second is, its heads are compared with the same heads of
the first. Weights only, no biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn
from transformers import PreTrainedModel

from headcount.base.errors import UsageError
from headcount.base.text import line
from headcount.changes.pair import open_pair
from headcount.costs.pairs import mask_between
from headcount.heads import Mask, Scores
from headcount.models.cut import rows_of
from headcount.models.find import layout_of, sites_of
from headcount.models.linear import weight_of
from headcount.models.remove import remove
from headcount.models.sites import Site

PARTS = ("q", "k", "v")


@dataclass(frozen=True, kw_only=True)
class WeightChange:
    """Mean absolute change of weights: of every head, of its parts, and of layers."""

    total: Scores
    """Over all weights of a head's query, key and value projections."""
    parts: dict[str, Scores]
    """The same for q, k and v alone."""
    layers: dict[str, list[float]]
    """stack -> mean over the heads of each layer; NaN for a layer without heads."""
    spread: dict[str, float]
    """stack -> (largest - smallest layer mean) / mean of the layer means; `all` over all stacks."""

    def __repr__(self) -> str:
        spread = f"spread between layers {self.spread.get('all', float('nan')):.3g}"
        return line(f"WeightChange({self.total!r}; {spread})", f"WeightChange({spread})")

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {
            "heads": self.total.by_layer(),
            **{name: scores.by_layer() for name, scores in self.parts.items()},
            "layers": self.layers,
            "spread": self.spread,
        }


def weight_change(before: nn.Module, after: nn.Module) -> WeightChange:
    """The mean absolute change of each head's q, k and v weights, for the heads `after` has."""
    left, right = open_pair(before, after, same_heads=False)
    pairs = _pair_heads(left, right)
    order = fused_order(left, right)
    changes: list[tuple[float, ...]] = []  # (total, q, k, v) for every head
    layers = []
    for site, old, mine, theirs in pairs:
        layers.append((site, len(mine)))
        moved = [
            _moved(left, right, (site, old), heads, order)
            for heads in zip(theirs, mine, strict=True)
        ]
        changes += moved
    layout = layout_of([site for site, _ in layers])
    columns = np.array(changes).reshape(-1, 1 + len(PARTS)).T
    total, *parts = (Scores(layout, tuple(column.tolist())) for column in columns)
    means = layer_means(total)
    every = [mean for stack in means.values() for mean in stack]
    return WeightChange(
        total=total,
        parts=dict(zip(PARTS, parts, strict=True)),
        layers=means,
        spread={name: spread(values) for name, values in (means | {"all": every}).items()},
    )


def layer_means(scores: Scores) -> dict[str, list[float]]:
    """stack -> the mean of each layer's heads; NaN for a layer without any."""
    return {
        stack: [float(np.mean(layer)) if layer else float("nan") for layer in layers]
        for stack, layers in scores.by_layer().items()
    }


def spread(means: list[float]) -> float:
    """(largest - smallest) / mean of the layers that have heads; 0 when nothing moved.

    >>> spread([1.0, 1.1, float("nan"), 0.9])
    0.20000000000000007
    """
    known = np.array([mean for mean in means if not np.isnan(mean)])
    if not len(known):
        return float("nan")
    return float(np.ptp(known) / known.mean()) if known.mean() else 0.0


def fused_order(model: PreTrainedModel, *others: PreTrainedModel) -> str:
    """How fused projections hold q, k and v: `qkv` (all of each) or `grouped` (by group).

    A pruned model has it written down, be it one of the others; otherwise removing a head for
    trial, which is verified, tells. With one key-value head both are the same.
    """
    sites = [site for site in sites_of(model) if "fused" in dict(_kinds(site))]
    site = next((site for site in sites if site.groups > 1), None)
    if site is None:
        return "qkv"
    written = next(filter(None, map(_fused_kind, (model, *others))), None)
    if written is None:
        layout = layout_of(sites_of(model))
        group = range(site.heads // site.groups)
        mask = Mask.full(layout).drop([(site.stack, site.layer, head) for head in group])
        written = _fused_kind(remove(model, mask))
    return written or "qkv"


def _fused_kind(model: PreTrainedModel) -> str | None:
    cut: Any = getattr(model.config, "headcount", None) or {"sites": []}
    kinds = [kind for entry in cut["sites"] for _, kind in entry["projections"]]
    return next((kind for kind in kinds if kind in ("qkv", "grouped")), None)


def _pair_heads(
    before: PreTrainedModel, after: PreTrainedModel
) -> list[tuple[Site, Site, list[int], list[int]]]:
    """(site after, site before, its heads, the same heads there) for every layer."""
    mine, theirs = sites_of(after), sites_of(before)
    kept: Mask | None = None
    if any(getattr(m.config, "headcount", None) for m in (before, after)):
        kept = mask_between(before, after)
    elif layout_of(mine) != layout_of(theirs):
        raise UsageError(
            f"The two models have different heads: {layout_of(theirs)} and "
            f"{layout_of(mine)}. Give two checkpoints of one architecture."
        )
    out = []
    for site, old in zip(mine, theirs, strict=True):
        same = range(site.heads) if kept is None else kept.indices(site.stack, site.layer)
        out.append((site, old, list(range(site.heads)), list(same)))
    return out


def _kinds(site: Site) -> list[tuple[str, str]]:
    """(kind, child) of the query, key and value projections; no further ones (DeBERTa's)."""
    first: dict[str, str] = {}
    for child, kind in site.projections:
        first.setdefault(kind, child)
    return list(first.items())


def _moved(
    left: PreTrainedModel,
    right: PreTrainedModel,
    sites: tuple[Site, Site],
    heads: tuple[int, int],
    order: str,
) -> tuple[float, ...]:
    """(total, q, k, v): the mean absolute difference of one head's weights."""
    mine, previous = sites
    old = _parts(left, previous, heads[0], order)
    new = _parts(right, mine, heads[1], order)
    sums, counts = [], []
    for part in PARTS:
        if old[part].shape != new[part].shape:
            raise UsageError(
                f"The {part} weights of {mine.stack} layer {mine.layer} have another shape in the "
                f"second model: {tuple(new[part].shape)}, not {tuple(old[part].shape)}."
            )
        difference = (new[part].double().cpu() - old[part].double().cpu()).abs()
        sums.append(float(difference.sum()))
        counts.append(difference.numel())
    parts = (total / count for total, count in zip(sums, counts, strict=True))
    return (sum(sums) / sum(counts), *parts)


def _parts(model: PreTrainedModel, site: Site, head: int, order: str) -> dict[str, Tensor]:
    """q, k, v -> (head_dim, width) the rows of one head's projections."""
    module = model.get_submodule(site.path)
    out: dict[str, Tensor] = {}
    for kind, child in _kinds(site):
        layer = getattr(module, child)
        weight = weight_of(layer).T.detach()
        packing = order if kind == "fused" else kind
        rows = rows_of(packing, [head], site.heads, site.groups, site.head_dim)
        names = {"q": "q", "k": "k", "v": "v", "kv": "kv"}.get(packing, "qkv")
        for position, name in enumerate(names):
            part = rows[position * site.head_dim : (position + 1) * site.head_dim]
            out[name] = weight[part]
    return out
