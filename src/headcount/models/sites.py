"""Where a model's heads are: attention modules recognised by their structure, not by a model list.

A site is a module with query, key and value projections (or fused ones) whose heads come
together in an output projection: its own child, or `output.dense` beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from headcount.models.cut import Narrow, NoWeights

QUERY = ("q_proj", "query", "q", "q_lin", "query_proj", "Wq", "wq", "linear_q", "to_q", "q_attn")
KEY = ("k_proj", "key", "k", "k_lin", "key_proj", "Wk", "wk", "linear_k", "to_k")
VALUE = ("v_proj", "value", "v", "v_lin", "value_proj", "Wv", "wv", "linear_v", "to_v")
FUSED = ("query_key_value", "c_attn", "qkv", "Wqkv", "qkv_proj", "att_proj")
FUSED_KEY_VALUE = ("c_attn", "kv", "kv_proj", "to_kv")
OUT = (
    "o_proj",
    "out_proj",
    "o",
    "out_lin",
    "c_proj",
    "Wo",
    "wo",
    "linear_out",
    "proj",
    "projection",
    "projection_layer",
    "dense",
)
# further projections of DeBERTa, conformers and LUKE whose rows belong to heads like the queries'
PER_HEAD = ("pos_key_proj", "pos_query_proj", "linear_pos", "w2e_query", "e2w_query", "e2e_query")
# parameters of a module or of a child with one entry per head, and the axis it lies on
PER_HEAD_PARAMETERS = {
    "sinks": 0,
    "pos_bias_u": 0,
    "pos_bias_v": 0,
    "relative_position_bias_table": 1,
    "relative_position_bias.relative_position_bias_table": 1,
    "logit_scale": 0,
    "continuous_position_bias_mlp.2.weight": 0,
}

HEAD_DIM = (
    "v_head_dim",
    "head_dim",
    "attention_head_size",
    "head_size",
    "key_value_proj_dim",
    "dim_per_head",
)
HEAD_COUNT = ("num_attention_heads", "num_heads", "n_heads", "n_head")


@dataclass(frozen=True)
class Site:
    """One attention module: where it is, how its projections are laid out, how many heads."""

    path: str
    out: str
    """Path of the output projection."""
    projections: tuple[tuple[str, str], ...]
    """(child, kind): kind is q, k, v, kv, or `fused` when how the three are mixed is not known."""
    head_dim: int
    heads: int
    groups: int
    stack: str
    layer: int = -1
    twins: tuple[tuple[str, str], ...] = ()
    """(path, out) of further modules that have the very same weights, as in Zamba."""

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """(path, out) of every module that runs these weights."""
        return ((self.path, self.out), *self.twins)

    def each(self) -> list[Site]:
        """This site once for every place, as if the weights there were its own."""
        return [replace(self, path=path, out=out, twins=()) for path, out in self.places]


def linear_sizes(module: nn.Module) -> tuple[int, int] | None:
    """(in, out) features of a linear layer of any kind, None for other modules."""
    if isinstance(module, Conv1D):
        return module.weight.shape[0], module.weight.shape[1]
    weight = getattr(module, "weight", None)
    if isinstance(weight, torch.Tensor) and weight.ndim == 2 and hasattr(module, "out_features"):
        return weight.shape[1], weight.shape[0]
    return None


def find_sites(model: nn.Module) -> list[Site]:
    """Every site of `model`, in module order, numbered within its stack."""
    sites: dict[object, Site] = {}
    counts: dict[str, int] = {}
    for path, module in model.named_modules():
        site = _site_at(model, path, module)
        if site is None:
            continue
        weights = _weights(model, site)
        first = sites.get(weights)
        if first is not None:
            sites[weights] = replace(first, twins=(*first.twins, (site.path, site.out)))
            continue
        layer = counts.get(site.stack, 0)
        counts[site.stack] = layer + 1
        sites[weights] = replace(site, layer=layer)
    order = {"encoder": 0, "cross": 1, "decoder": 2}
    return sorted(sites.values(), key=lambda site: (order[site.stack], site.layer))


def _weights(model: nn.Module, site: Site) -> tuple[int, ...]:
    """Which tensors a site computes with: modules of the same ones are one site."""
    paths = (*(f"{site.path}.{child}".lstrip(".") for child, _ in site.projections), site.out)
    return tuple(id(model.get_submodule(path).weight) for path in paths)


def _first(children: dict[str, nn.Module], names: tuple[str, ...]) -> str | None:
    return next((n for n in names if n in children and linear_sizes(children[n])), None)


def _projections(children: dict[str, nn.Module]) -> tuple[tuple[str, str], ...] | None:
    q, k, v = (_first(children, names) for names in (QUERY, KEY, VALUE))
    kv = _first(children, FUSED_KEY_VALUE)
    fused = _first(children, FUSED)
    latent = next((name for name in ("q_b_proj", "q_proj") if name in children), None)
    if latent and "kv_b_proj" in children and not k and not v:
        # DeepSeek's: what was squeezed gets a block for every head again
        projections = [(latent, "q"), ("kv_b_proj", "q")]
    elif q and k and v:
        projections = [(q, "q"), (k, "k"), (v, "v")]
    elif q and kv and not k and not v:
        projections = [(q, "q"), (kv, "kv")]
    elif fused and not (q or k or v):
        projections = [(fused, "fused")]
    else:
        return None
    projections += [
        (name, "q") for name in PER_HEAD if name in children and linear_sizes(children[name])
    ]
    return tuple(projections)


def _out_projection(model: nn.Module, path: str, children: dict[str, nn.Module]) -> str | None:
    inside = _first(children, OUT)
    if inside:
        return f"{path}.{inside}" if path else inside
    if "." not in path:
        return None
    beside = f"{path.rpartition('.')[0]}.output.dense"
    try:
        return beside if linear_sizes(model.get_submodule(beside)) else None
    except AttributeError:
        return None


def _head_dim(module: nn.Module, out_inputs: int) -> int | None:
    for name in HEAD_DIM:
        size = getattr(module, name, None)
        if isinstance(size, int) and size > 0 and out_inputs % size == 0:
            return size
    for name in HEAD_COUNT:
        count = getattr(module, name, None)
        if isinstance(count, int) and count > 0 and out_inputs and out_inputs % count == 0:
            return out_inputs // count
    return None


def _site_at(model: nn.Module, path: str, module: nn.Module) -> Site | None:
    hidden = {name: part for name, part in vars(module).items() if isinstance(part, NoWeights)}
    children = dict(module.named_children()) | hidden
    projections = _projections(children)
    if projections is None:
        return None
    out = _out_projection(model, path, children)
    if out is None:
        return None
    sizes = linear_sizes(model.get_submodule(out))
    head_dim = _head_dim(module, sizes[0]) if sizes else None
    narrowed = getattr(module, "narrowed", None)
    if narrowed and isinstance(model.get_submodule(out), Narrow):
        return _narrowed(model, path, module, out)
    if not sizes or not head_dim:
        return None
    heads = sizes[0] // head_dim
    groups = _groups(children, projections, heads, head_dim)
    declared = next((getattr(module, n) for n in HEAD_COUNT if hasattr(module, n)), heads)
    if groups is None or declared != heads:
        return None
    return Site(path, out, projections, head_dim, heads, groups, _stack_of(model, path, module))


def _narrowed(model: nn.Module, path: str, module: Any, out: str) -> Site:
    """A site whose projections keep their width around the weights that are left."""
    was, kept = module.narrowed, module.kept_heads
    size = was["heads"] // was["groups"]
    groups = len({head // size for head in kept})
    lost = [(c, kind) for c, kind in was["projections"] if isinstance(getattr(module, c), Narrow)]
    projections = tuple((f"{child}.kept", kind) for child, kind in lost)
    if was["narrow"] == "values" and any(kind not in ("k", "v") for _, kind in lost):
        projections = ()  # what is left are not blocks of heads
    stack = _stack_of(model, path, module)
    return Site(path, f"{out}.kept", projections, was["head_dim"], len(kept), groups, stack)


def _groups(
    children: dict[str, nn.Module],
    projections: tuple[tuple[str, str], ...],
    heads: int,
    head_dim: int,
) -> int | None:
    """Key-value heads from the projections' sizes; None when the sizes do not fit together."""
    sizes = {kind: linear_sizes(children[name])[1] for name, kind in projections}  # pyright: ignore[reportOptionalSubscript]
    if "fused" in sizes:
        groups, rest = divmod(sizes["fused"] - heads * head_dim, 2 * head_dim)
    elif "kv" in sizes:
        groups, rest = divmod(sizes["kv"], 2 * head_dim)
    elif "k" not in sizes:
        groups, rest = heads, 0
    else:
        # keys may be wider than values
        groups, rest = divmod(sizes["v"], head_dim)
        rest += sizes["k"] % groups if groups else sizes["k"]
    # queries may be, and hold a gate for every head
    queries = sizes.get("q", heads * head_dim)
    if queries % heads or queries < heads * head_dim if heads else queries:
        return None
    if rest or groups < 0 or (groups == 0) != (heads == 0) or (groups and heads % groups):
        return None
    return groups


def _stack_of(model: nn.Module, path: str, module: nn.Module) -> str:
    lowered = path.lower()
    if getattr(module, "is_cross_attention", False) or any(
        word in lowered
        for word in ("crossattention", "encoder_attn", "encdecattention", "cross_attn")
    ):
        return "cross"
    if getattr(module, "is_causal", False) or getattr(module, "is_decoder", False):
        return "decoder"
    parts = lowered.split(".")
    if "decoder" in parts:
        return "decoder"
    if "encoder" in parts:
        return "encoder"
    tower = _tower(model, path)
    if tower is model and hasattr(module, "is_causal"):
        return "encoder"
    # the language model inside PaliGemma sees its prefix both ways, and still is the decoder
    return "decoder" if _only_causal(getattr(tower, "config", None)) else "encoder"


def _tower(model: nn.Module, path: str) -> nn.Module:
    """The smallest model of its own kind around a module: a vision tower, a language model."""
    kind = getattr(getattr(model, "config", None), "model_type", None)
    while path:
        path = path.rpartition(".")[0]
        inner = model.get_submodule(path)
        if isinstance(inner, PreTrainedModel) and inner.config.model_type != kind:
            return inner
    return model


def _only_causal(config: object) -> bool:
    """Whether transformers knows this config for causal but not for masked language modelling."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    kind = getattr(config, "model_type", None)
    return (
        kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )
