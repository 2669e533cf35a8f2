"""What a model's heads cost: parameters, memory, FLOPs at a length, key-value cache.

An attention module is its query, key, value and output projections with their biases: what
removal cuts. Its FLOPs are counted by a run without weights (see `flops.py`); for plain
self-attention over n tokens they are `2 n in out` for each projection and `2 * 2 n n width` for
the two attention products.

In BERT-base a module has 2.36 M parameters, 9.45 MB in float32; its weights alone are 9.437 MB,
the 9.43 MB of the autoattention paper. The paper's 100.9 million FLOPs come with no length and
no convention; at 128 tokens one projection, both attention products and the softmax give that
(100.86 M, one for each multiply-add). All four projections and both products are 654 M here.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from headcount.base import html
from headcount.base.errors import UnsupportedError, UsageError
from headcount.base.text import line
from headcount.costs.flops import FlopCount, count_flops, fitting_length, inputs_at
from headcount.costs.serving import ServingCost, serving_of
from headcount.heads import Layout, Mask
from headcount.models.cut import sites_in
from headcount.models.door import require_pretrained
from headcount.models.find import layout_of, sites_of
from headcount.models.load import read_config, skeleton
from headcount.models.numbers import left_of
from headcount.models.probe import describe
from headcount.models.sites import Site
from headcount.models.unread import UnreadAttention, find_unread


@dataclass(frozen=True, kw_only=True)
class SiteCost:
    """The cost of one attention module."""

    site: Site
    uses: int
    """How often one forward pass runs it; the FLOPs are those of all runs."""
    parameters: int
    memory: int
    """Bytes of the parameters."""
    flops: int | None
    """None when they cannot be counted."""
    group_flops: int
    """The part of `flops` that goes with key-value heads rather than with heads."""
    cache: int
    """Bytes of keys and values a decoder keeps for each token (cross: for each source token)."""

    def saved_with(self, kept: tuple[int, ...]) -> int:
        """FLOPs saved when only these heads are left: every counted term is linear in heads."""
        if not kept or self.flops is None:
            return self.flops or 0
        size = self.site.heads // self.site.groups
        kept_groups = len({head // size for head in kept})
        by_head = (self.flops - self.group_flops) * len(kept) // self.site.heads
        return self.flops - by_head - self.group_flops * kept_groups // self.site.groups

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {
            "path": self.site.path,
            "stack": self.site.stack,
            "layer": self.site.layer,
            "heads": self.site.heads,
            "key_value_heads": self.site.groups,
            "head_width": self.site.head_dim,
            "uses": self.uses,
            "parameters": self.parameters,
            "memory": self.memory,
            "flops": self.flops,
            "cache_per_token": self.cache,
        }


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a model's attention modules beside that of the whole model."""

    model: str
    """Class of the model."""
    model_type: str
    counted: str | None
    """Class whose FLOPs were counted: the model's, that of the base model inside it, or none."""
    uncounted: str
    """Why the FLOPs could not be counted; empty when they were."""
    length: int
    reads: str
    """The example whose FLOPs were counted, in words."""
    dtype: str
    sites: tuple[SiteCost, ...]
    parameters: int
    memory: int
    flops: int | None
    heads_before: int
    """Heads before any were removed; as many as there are when none were."""
    unread: tuple[UnreadAttention, ...]
    """Attention that is seen and not understood; its heads are not counted."""
    left: Mask | None = None
    """The heads that are left, of those it had at first; None where all are."""
    name: str | None = None
    """The folder, file or name that was asked for; None for a model in memory."""
    serving: ServingCost | None = None
    """What it takes at the context and batch that were asked for."""

    @cached_property
    def layout(self) -> Layout:
        """The heads that were counted."""
        uses = {cost.site.path: max(1, cost.uses) for cost in self.sites}
        return layout_of([cost.site for cost in self.sites], uses, self.unread)

    @property
    def attention_parameters(self) -> int:
        """Parameters of all attention modules."""
        return sum(cost.parameters for cost in self.sites)

    @property
    def attention_memory(self) -> int:
        """Bytes of all attention modules."""
        return sum(cost.memory for cost in self.sites)

    @property
    def attention_flops(self) -> int | None:
        """FLOPs of all attention modules."""
        return None if self.flops is None else sum(cost.flops or 0 for cost in self.sites)

    @property
    def share(self) -> float | None:
        """The heads' share of the model's FLOPs: all that removing heads could save."""
        if not self.flops or self.attention_flops is None:
            return None
        return self.attention_flops / self.flops

    @property
    def ceiling(self) -> float | None:
        """How many times faster the model could get by losing every head."""
        return None if self.share is None or self.share == 1 else 1 / (1 - self.share)

    def flops_with(self, mask: Mask) -> int | None:
        """FLOPs of the model when only the mask's heads are left."""
        if self.flops is None:
            return None
        kept = {(name, layer): mask.indices(name, layer) for name, layer, _ in mask.layout.layers()}
        return self.flops - sum(
            cost.saved_with(kept[cost.site.stack, cost.site.layer]) for cost in self.sites
        )

    def ratio(self, mask: Mask) -> float | None:
        """The ideal time of a removal as a share of the time before: FLOPs after / before."""
        after = self.flops_with(mask)
        return None if after is None or not self.flops else after / self.flops

    def __repr__(self) -> str:
        brief = f"{self.model}, {self.parameters:,} parameters, {len(self.layout)} heads"
        flops = "" if self.flops is None else f", {self.flops:.3g} FLOPs for {self.reads}"
        return line(f"Cost({brief}{flops})", f"Cost({brief})")

    def _repr_html_(self) -> str:
        columns = ["layer", "module", "heads", "parameters", "bytes", "FLOPs"]
        rows: list[tuple[object, ...]] = [
            (f"{item.site.stack} {item.site.layer}", item.site.path, item.site.heads,
             item.parameters, item.memory, item.flops)
            for item in self.sites
        ]  # fmt: skip
        all_heads = (self.attention_parameters, self.attention_memory, self.attention_flops)
        rows.append(("all heads", "", len(self.layout), *all_heads))
        rows.append(("whole model", "", "", self.parameters, self.memory, self.flops))
        return html.table(columns, rows, title=f"{self!r} {self.layout}")

    def to_json(self) -> dict[str, object]:
        """Everything that is known, as plain values."""
        return {
            "model": self.name,
            "class": self.model,
            "model_type": self.model_type,
            "dtype": self.dtype,
            "length": self.length if "tokens" in self.reads else None,
            "reads": self.reads,
            "heads": len(self.layout),
            "heads_before": self.heads_before,
            "layout": self.layout.to_json(),
            "not_understood": [{"path": item.path, "class": item.kind} for item in self.unread],
            "parameters": self.parameters,
            "memory": self.memory,
            "flops": self.flops,
            "flops_of": self.counted,
            "attention": {
                "parameters": self.attention_parameters,
                "memory": self.attention_memory,
                "flops": self.attention_flops,
                "share_of_flops": self.share,
                "ceiling": self.ceiling,
            },
            "modules": [item.to_json() for item in self.sites],
            **({} if self.serving is None else {"serving": self.serving.to_json()}),
        }


def inspect(
    model: str | os.PathLike[str] | PreTrainedModel,
    *,
    length: int | None = None,
    context: int | None = None,
    batch: int = 1,
    probe: Mapping[str, Tensor] | None = None,
) -> Cost:
    """Which heads a model has and what they cost: the layout, parameters, memory, FLOPs.

    `model` is a model, its folder, a config.json or a name; of these the config alone is read.
    FLOPs count every matrix product of one example of `length` tokens (128, or what fits), two
    for each multiply-add; memory is that of the parameters in the dtype the model was saved in.
    With a `context`, `serving` has what `batch` users of so many tokens take of a decoder, and
    what could be saved of it at most; `length` is then the context.
    `probe` has inputs of your own to count FLOPs on, instead of those.
    """
    length = context if length is None else length
    if isinstance(model, str | os.PathLike):
        name = os.fspath(model)
        counted = cost_of(
            *read_config(name), length=length, context=context, batch=batch, probe=probe
        )
        counted = replace(counted, name=name)
    else:
        model = require_pretrained(model, "hc.inspect")
        counted = cost(model, length=length, context=context, batch=batch, probe=probe)
    if length is not None and "tokens" not in counted.reads:
        raise UsageError(f"{counted.model} reads {counted.reads}, not tokens: leave out --length.")
    return counted


def cost(
    model: PreTrainedModel,
    *,
    length: int | None = None,
    context: int | None = None,
    batch: int = 1,
    probe: Mapping[str, Tensor] | None = None,
) -> Cost:
    """What the heads of `model` cost at `length` tokens (128, or what fits); no weight is used."""
    # a pruned model's class is made on the fly; `skeleton` makes it again from the config
    kind = getattr(type(model), "base_class", type(model))
    return cost_of(
        model.config,
        kind,
        length=length,
        dtype=model.dtype,
        context=context,
        batch=batch,
        probe=probe,
    )


def serving_cost(model: PreTrainedModel, *, context: int, batch: int = 1) -> ServingCost:
    """What `model` takes with `batch` users of `context` tokens, refused where it has no room."""
    serving = cost(model, context=context, batch=batch).serving
    assert serving is not None  # it was asked for
    return serving


def cost_of(
    config: PreTrainedConfig,
    kind: type[PreTrainedModel],
    *,
    length: int | None = None,
    dtype: torch.dtype | None = None,
    context: int | None = None,
    batch: int = 1,
    probe: Mapping[str, Tensor] | None = None,
) -> Cost:
    """The cost of the model that `config` describes, in the dtype it was saved in."""
    length = fitting_length(config, length)
    if context is not None:
        fitting_length(config, context)
    config = copy.deepcopy(config)
    # the ways of computing that torch can count on tensors without data
    config._attn_implementation = "eager"
    config._experts_implementation = "batched_mm"
    model = skeleton(config, kind)
    # torch's counter puts hooks on whatever wants a gradient, even where there is none
    model.requires_grad_(False)
    sites = sites_of(model)
    dtype = dtype or _saved_dtype(config)
    before = {(entry["stack"], entry["layer"]): entry["heads"] for entry in sites_in(config)}
    counted, uncounted = None, ""
    try:
        counted = count_flops(model, length=length, probe=probe)
    except UnsupportedError as error:
        uncounted = str(error)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if not parameters:
        raise UsageError(f"{kind.__name__} has no parameters: is its config.json damaged?")
    costs = tuple(_site_cost(model, site, counted, dtype) for site in sites)
    serving = None
    if context is not None:
        serving = serving_of(model, costs, dtype.itemsize, context=context, batch=batch)
    return Cost(
        model=kind.__name__,
        model_type=config.model_type,
        counted=counted.model if counted else None,
        uncounted=uncounted,
        length=length,
        reads=describe(probe) or "the probe" if probe else _reads(model, length),
        dtype=str(dtype).removeprefix("torch."),
        sites=costs,
        serving=serving,
        parameters=parameters,
        memory=parameters * dtype.itemsize,
        flops=counted.total if counted else None,
        heads_before=sum(before.get((site.stack, site.layer), site.heads) for site in sites),
        left=left_of(config, sites),
        unread=tuple(find_unread(model, sites)),
    )


def _reads(model: PreTrainedModel, length: int) -> str:
    try:
        return describe(inputs_at(model, length=length))
    except UnsupportedError:
        return f"{length} tokens"


def _site_cost(
    model: PreTrainedModel, site: Site, counted: FlopCount | None, dtype: torch.dtype
) -> SiteCost:
    paths = [
        (f"{path}.{child}", kind) for path, _ in site.places for child, kind in site.projections
    ]
    parameters = sum(
        parameter.numel()
        for path in (*(f"{site.path}.{child}" for child, _ in site.projections), site.out)
        for parameter in model.get_submodule(path).parameters()
    )
    runs = sum(counted.runs.get(path, 0) if counted else 1 for path, _ in site.places)
    remembers = site.stack in ("decoder", "cross")
    return SiteCost(
        site=site,
        uses=runs,
        parameters=parameters,
        memory=parameters * dtype.itemsize,
        flops=_site_flops(site, counted.flops) if counted else None,
        group_flops=_group_flops(site, paths, counted.flops) if counted else 0,
        cache=2 * site.groups * site.head_dim * dtype.itemsize * runs if remembers else 0,
    )


def _site_flops(site: Site, flops: Mapping[str, int]) -> int:
    # a linear path goes with no head; one whose projection stands outside runs outside
    inside = sum(
        flops.get(path, 0) - (out.startswith(path + ".") and flops.get(f"{path}.linear_path", 0))
        for path, out in site.places
    )
    # BERT's output projection stands outside its attention module
    beside = (out for path, out in site.places if not out.startswith(path + "."))
    return inside + sum(flops.get(out, 0) for out in beside)


def _group_flops(site: Site, paths: list[tuple[str, str]], flops: Mapping[str, int]) -> int:
    total = sum(flops.get(path, 0) for path, kind in paths if kind in ("k", "v", "kv"))
    fused = sum(flops.get(path, 0) for path, kind in paths if kind == "fused")
    if fused:
        total += fused * 2 * site.groups // (site.heads + 2 * site.groups)
    return total


def _saved_dtype(config: PreTrainedConfig) -> torch.dtype:
    saved = getattr(config, "dtype", None)
    if isinstance(saved, str):
        saved = getattr(torch, saved, None)
    return saved if isinstance(saved, torch.dtype) else torch.float32
