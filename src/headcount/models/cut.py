"""Cut heads out of a transformers model by written instructions (`config.headcount`).

This file stands alone on torch and transformers: `headcount export --to standalone` ships it
beside the weights. `config.headcount["base"]` names the model that heads were removed from,
`config.headcount["biases"]` the projections that got a bias, which the class does not give them,
`config.headcount["linear"]` {path, out, width, rank} of each attention module that got a linear
path beside its heads, and `config.headcount["sites"]` holds, for each one that lost heads:

    path, out       the attention module and its output projection
    projections     [child, kind] pairs; kind says which rows of a child belong to which head
    head_dim, heads, groups, kept
    attributes      numbers on the module to set to their new values
    parameters      {name: axis} of parameters, the module's or a child's, with one entry per head
    share           "share" when the model lends the layer something per head of the full model,
                    "relative-share" when that is T5's position bias, else ""
    empty           for a layer without heads "skip" or "relative-skip", "" to run it as it is
    returns         how many things a skipped layer returns (2), 0 for a tensor alone
    batch_axis      where the batch is in its hidden states (0)
    narrow          for a layer that keeps its width, with zeros in the place of what is gone: which
                    projections lose rows, "all", "values" or only the "output" (not in others)
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Sequence
from typing import Any, TypedDict

import torch
import torch.nn.functional as F
from torch import nn
from transformers import Cache, PreTrainedConfig

SOURCES = ("key_value_states", "encoder_hidden_states", "key")
Arguments = dict[str, Any]
"""What a module is called with, by name."""
PER_HEAD_ARGUMENTS = ("attention_mask", "mask", "position_bias", "relative_position_bias", "alibi")


def rows_of(kind: str, kept: Sequence[int], heads: int, groups: int, head_dim: int) -> list[int]:
    """The rows of a projection of this kind that belong to the kept heads, in their new order."""
    size = heads // groups if groups else 1
    kept_groups = sorted({head // size for head in kept})

    def block(indices: Sequence[int], start: int = 0) -> list[int]:
        return [start + i * head_dim + j for i in indices for j in range(head_dim)]

    if kind == "q":
        return block(kept)
    if kind in ("k", "v"):
        return block(kept_groups)
    if kind == "kv":
        return block(kept_groups) + block(kept_groups, groups * head_dim)
    if kind == "qkv":
        keys = heads * head_dim
        return block(kept) + block(kept_groups, keys) + block(kept_groups, keys + groups * head_dim)
    if kind == "grouped":
        rows: list[int] = []
        for group in kept_groups:
            inside = [head % size for head in kept if head // size == group]
            rows += block([*inside, size, size + 1], group * (size + 2) * head_dim)
        return rows
    raise ValueError(f"Unknown kind of projection: {kind!r}")


def values_of(kind: str, kept: Sequence[int], heads: int, groups: int, head_dim: int) -> list[int]:
    """As `rows_of`, but queries and keys stay whole: they may be normed over all heads."""
    size = heads // groups if groups else 1
    gone = set(range(groups)) - {head // size for head in kept}
    width = {"q": heads, "k": groups, "kv": 2 * groups}.get(kind, heads + 2 * groups)
    if kind == "v":
        return rows_of(kind, kept, heads, groups, head_dim)
    if kind == "grouped":
        dropped = {group * (size + 2) + size + 1 for group in gone}
    else:
        dropped = set() if kind in ("q", "k") else {width - groups + group for group in gone}
    return [row for row in range(width * head_dim) if row // head_dim not in dropped]


def _is_transposed(layer: nn.Module) -> bool:
    return type(layer).__name__ == "Conv1D"


def _replace(module: nn.Module, name: str, tensor: torch.Tensor) -> None:
    old = getattr(module, name)
    new = nn.Parameter(tensor.detach().clone(), requires_grad=old.requires_grad)
    setattr(module, name, new)


def keep_outputs(layer: Any, rows: list[int]) -> None:
    """Keep only these output features of a linear layer."""
    index = torch.tensor(rows, dtype=torch.long, device=layer.weight.device)
    _replace(layer, "weight", layer.weight.index_select(1 if _is_transposed(layer) else 0, index))
    if getattr(layer, "bias", None) is not None:
        _replace(layer, "bias", layer.bias.index_select(0, index))
    setattr(layer, "nf" if _is_transposed(layer) else "out_features", len(rows))


def keep_inputs(layer: Any, columns: list[int]) -> None:
    """Keep only these input features of a linear layer."""
    index = torch.tensor(columns, dtype=torch.long, device=layer.weight.device)
    _replace(layer, "weight", layer.weight.index_select(0 if _is_transposed(layer) else 1, index))
    setattr(layer, "nx" if _is_transposed(layer) else "in_features", len(columns))


class NoWeights(nn.Module):
    """A projection of a layer without heads: no weights, of the output projection the bias."""

    bias: nn.Parameter | None

    def __init__(self, weight: torch.Tensor, bias: Any) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight = weight  # for those who ask for its shape; not saved
        self.bias = bias

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Nothing, or the bias for every token."""
        out = states.new_zeros(*states.shape[:-1], self.out_features)
        return out if self.bias is None else out + self.bias


class Narrow(nn.Module):
    """A projection with fewer weights between neighbours of the old width.

    As an output projection it reads the inputs that are left; else zeros stand in its outputs
    where rows are gone.
    """

    def __init__(self, kept: Any, size: int, rows: list[int], *, reads: bool) -> None:
        super().__init__()
        self.kept = kept
        self.size, self.rows, self.reads = size, rows, reads

    @property
    def weight(self) -> torch.Tensor:
        """The weights that are left."""
        return self.kept.weight

    @property
    def bias(self) -> torch.Tensor | None:
        """The bias that is left."""
        return self.kept.bias

    @property
    def out_features(self) -> int:
        """The outputs that are left."""
        return self.kept.weight.shape[1 if _is_transposed(self.kept) else 0]

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """What the whole projection gives where the heads that are gone say nothing."""
        index = torch.tensor(self.rows, dtype=torch.long, device=states.device)
        if self.reads:
            return self.kept(states.index_select(-1, index))
        out = self.kept(states)
        return out.new_zeros(*out.shape[:-1], self.size).index_copy(-1, index, out)


def narrow(parent: Any, name: str, rows: list[int], *, reads: bool) -> None:
    """Keep these rows (columns of one that `reads`) of a projection between its old neighbours."""
    layer: Any = getattr(parent, name)
    cut = keep_inputs if reads else keep_outputs
    if isinstance(layer, Narrow):
        cut(layer.kept, [layer.rows.index(row) for row in rows])
        layer.rows = rows
        return
    size = layer.weight.shape[int(reads) ^ int(_is_transposed(layer))]
    if len(rows) == size:
        return
    cut(layer, rows)
    setattr(parent, name, Narrow(layer, size, rows, reads=reads))


def drop_weights(parent: Any, name: str, axis: int, empty: dict[int, torch.Tensor]) -> None:
    """Put `NoWeights` where a projection is; a child of the module only if it has a bias.

    What has no heads then has nothing that could be saved, quantised, adapted or moved. `empty`
    has one tensor for each one before, so that layers that shared weights still do.
    """
    layer: Any = getattr(parent, name)
    layer = layer.kept if isinstance(layer, Narrow) else layer
    if not isinstance(layer, nn.Linear) and not _is_transposed(layer):
        # it is done, or a kind of its own (I-BERT's return two things) that keeps weights of size 0
        if not isinstance(layer, NoWeights):
            (keep_inputs if axis else keep_outputs)(layer, [])
        return
    shape: Any = (layer.nf, layer.nx) if _is_transposed(layer) else layer.weight.shape
    sizes = [int(size) for size in shape]
    sizes[axis] = 0
    weight = empty.setdefault(id(layer.weight), torch.empty(sizes, device="cpu"))
    nothing = NoWeights(weight, getattr(layer, "bias", None) if axis else None)
    if nothing.bias is not None:
        setattr(parent, name, nothing)
    else:
        delattr(parent, name)
        vars(parent)[name] = nothing


def find_module(model: Any, path: str) -> Any:
    """The module at `path`, which may have been written with or without the base model's prefix."""
    prefix = getattr(model, "base_model_prefix", "") + "."
    for candidate in (path, prefix + path, path.removeprefix(prefix)):
        try:
            return model.get_submodule(candidate)
        except AttributeError:
            continue
    return None


def block_of(module: Any, child: str, kind: str, heads: int, groups: int) -> int:
    """How many rows of a projection a head has: more than the head's width where it has a gate."""
    layer = getattr(module, child)
    rows = layer.size if isinstance(layer, Narrow) else layer.weight.shape[_is_transposed(layer)]
    blocks = {"q": heads, "k": groups, "v": groups, "kv": 2 * groups}.get(kind, heads + 2 * groups)
    return rows // blocks


def cut_site(model: nn.Module, site: dict[str, Any], empty: dict[int, torch.Tensor]) -> None:
    """Carry out one site's instructions; `empty` is what `drop_weights` shares between sites."""
    module, out = find_module(model, site["path"]), find_module(model, site["out"])
    if module is None or out is None:
        # a part of the saved model that this class does not have, such as a decoder
        return
    heads, groups, head_dim = site["heads"], site["groups"], site["head_dim"]
    # heads are named by their place in the full model; the module may have lost some before
    before = getattr(module, "kept_heads", range(heads))
    kept = [before.index(head) for head in site["kept"]]
    groups_before = len({head * groups // heads for head in before})
    counts = (kept, len(before), groups_before)
    above, _, name = site["out"].rpartition(".")
    if kept and site.get("narrow"):
        rows = values_of if site["narrow"] == "values" else rows_of
        whole = (site["kept"], heads, groups)
        for child, kind in site["projections"] if site["narrow"] != "output" else ():
            width = block_of(module, child, kind, heads, groups)
            narrow(module, child, rows(kind, *whole, width), reads=False)
        narrow(find_module(model, above), name, rows_of("q", *whole, head_dim), reads=True)
        module.narrowed = {key: site[key] for key in ("heads", "groups", "head_dim", "narrow")}
        module.narrowed["projections"] = site["projections"]
    elif kept:
        for child, kind in site["projections"]:
            width = block_of(module, child, kind, len(before), groups_before)
            keep_outputs(getattr(module, child), rows_of(kind, *counts, width))
        keep_inputs(out, rows_of("q", *counts, head_dim))
    else:
        drop_weights(find_module(model, above), name, 1, empty)
        for child, _ in site["projections"]:
            drop_weights(module, child, 0, empty)
    for path, axis in site["parameters"].items():
        above, _, name = path.rpartition(".")
        owner = module.get_submodule(above)
        tensor: Any = getattr(owner, name)
        index = torch.tensor(kept, dtype=torch.long, device=tensor.device)
        if kept:
            _replace(owner, name, tensor.index_select(axis, index))
        elif isinstance(tensor, nn.Parameter):
            delattr(owner, name)
            none = tensor.detach().index_select(axis, index)
            owner.register_buffer(name, none, persistent=False)
    for name, value in site["attributes"].items():
        setattr(module, name, value)
    module.kept_heads, module.full_heads = tuple(site["kept"]), heads
    own_out = site["out"].startswith(site["path"] + ".")
    module.own_out = site["out"][len(site["path"]) + 1 :] if own_out else None
    module.crosses = site["stack"] == "cross"
    module.returns, module.batch_axis = site.get("returns", 2), site.get("batch_axis", 0)
    module.linear_path = getattr(module, "linear_path", None)
    mixin = site["empty"] or site["share"]
    if mixin:
        become(module, MIXINS[mixin])


def become(module: nn.Module, mixin: type) -> None:
    """Change the module's class to `mixin` over its own class; it still pickles and copies."""
    module.__class__ = mixed_class(mixin, getattr(type(module), "base_class", type(module)))


@functools.cache
def mixed_class(mixin: type, base: type) -> Any:
    """`base` with `mixin` in front, looking like `base` to everyone who asks."""
    body = {"__module__": base.__module__, "__qualname__": base.__qualname__, "base_class": base}
    mixed = type(base.__name__, (mixin, base), body)
    # Trainer, generate and pipelines read the names of forward's arguments
    mixed.forward = functools.wraps(base.forward)(_plain_function(mixed.forward))
    return mixed


def _plain_function(function: Any) -> Any:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    return forward


def _rebuild(mixin: type, base: type) -> Any:
    return object.__new__(mixed_class(mixin, base))


class Mixin:
    """A class swapped in at run time: pickled as its two halves."""

    base_class: Any
    config: Any
    kept_heads: tuple[int, ...]
    full_heads: int
    own_out: str | None
    crosses: bool
    returns: int
    batch_axis: int
    linear_path: LinearPath | None

    def __reduce_ex__(self, protocol: Any) -> Any:
        mixed = type(self)
        return _rebuild, (mixed.__mro__[1], mixed.base_class), self.__dict__

    def named_arguments(self, args: tuple[Any, ...], kwargs: Arguments) -> Arguments:
        """The call's arguments by name."""
        names = list(inspect.signature(self.base_class.forward).parameters)[1:]
        return dict(zip(names, args, strict=False)) | kwargs


class LinearPath(nn.Module):
    """Added to an attention module's output: a linear map of its own input, of this rank.

    It is a child of the module, which is seen to be called; the output projection's answer, which
    may be a module beside it, gets what it gives.
    """

    def __init__(self, width: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.zeros(rank, width)) if rank < width else None
        self.up = nn.Parameter(torch.zeros(outputs, rank))
        self.inputs: dict[int, torch.Tensor] = {}

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """What is added."""
        return F.linear(states if self.down is None else F.linear(states, self.down), self.up)

    def see(self, module: nn.Module, args: tuple[Any, ...], kwargs: Arguments) -> None:
        """Take what the attention module was called with."""
        self.inputs[_thread()] = hidden_states(kwargs, args)

    def add(self, module: Any, args: Any, output: torch.Tensor) -> torch.Tensor:
        """The projection's answer with the path's."""
        states = self.inputs.pop(_thread())
        if states.shape[:-1] != output.shape[:-1]:
            raise ValueError("A linear path needs an attention output for each of its inputs.")
        return output + self(states)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"inputs": {}}


def _thread() -> int:
    # what is compiled or traced runs in one thread, and torch cannot trace the question
    return 0 if torch.compiler.is_compiling() else threading.get_ident()


class Shared(Mixin):
    """A layer that takes its share of what the model lends per head: masks, position biases."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The base's forward pass on this layer's share."""
        return self.base_class.forward(self, **self.take_share(self.named_arguments(args, kwargs)))

    def take_share(self, call: Arguments) -> Arguments:
        """The call with everything that has one entry per head cut to this layer's heads."""
        for name in PER_HEAD_ARGUMENTS:
            lent = call.get(name)
            if not torch.is_tensor(lent):
                continue
            index = torch.tensor(self.kept_heads, dtype=torch.long, device=lent.device)
            if lent.ndim == 4 and lent.shape[1] == self.full_heads > 1:
                call[name] = lent.index_select(1, index)
            elif name == "alibi" and lent.ndim == 3:
                # BLOOM's is (batch * head, 1, key)
                by_head = lent.unflatten(0, (-1, self.full_heads))
                call[name] = by_head.index_select(1, index).flatten(0, 1)
        return call


class Skipped(Mixin):
    """A layer without heads: what remains of it is the output projection's bias."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the base returns (its output, attention weights…), without its work."""
        call = self.named_arguments(args, kwargs)
        hidden = hidden_states(call)
        _, *lengths = remember(self, call, hidden)
        if self.own_out is None:
            out = hidden.new_zeros(*hidden.shape[:-1], 0)
        else:
            out = torch.zeros_like(hidden)
            bias = getattr(getattr(self, self.own_out), "bias", None)
            if bias is not None:
                out = out + bias
            if self.linear_path is not None:
                out = self.linear_path.add(self, (), out)
            if call.get("residual") is not None:
                out = out + call["residual"]
        if not self.returns:
            return out
        return (out, *self.no_weights(hidden, lengths), *[None] * self.returns)[: self.returns]

    def no_weights(self, hidden: torch.Tensor, lengths: list[int]) -> list[torch.Tensor | None]:
        """The attention weights of no head, for each kind of keys."""
        if getattr(getattr(self, "config", None), "_attn_implementation", "eager") != "eager":
            return [None for _ in lengths]
        batch, queries = hidden.shape[self.batch_axis], hidden.shape[1 - self.batch_axis]
        # None would vanish from `attentions` and shift the numbers of later layers
        return [hidden.new_zeros(batch, 0, queries, keys) for keys in lengths]


def hidden_states(call: Arguments, args: tuple[Any, ...] = ()) -> torch.Tensor:
    """The layer's input: named so, or first; `args` are what was given without a name."""
    return call.get("hidden_states", next(iter((*args, *call.values()))))


def remember(module: Any, call: Arguments, hidden: torch.Tensor) -> tuple[Any, ...]:
    """Let the key-value cache count this call's tokens, as a layer with heads would.

    Returns how many it had seen, and the length of the keys; where one layer attends both to its
    own tokens and to the encoder's (T5Gemma 2), the length of both.
    """
    # models have several names for it
    cache = next((value for value in call.values() if isinstance(value, Cache)), None)
    source = next((call[name] for name in SOURCES if call.get(name) is not None), None)
    if module.crosses or call.get("key_value_states") is not None:
        return 0, _remember_source(module, cache, hidden if source is None else source)
    length = hidden.shape[min(1 - module.batch_axis, hidden.ndim - 2)]
    if cache is None:
        return 0, length
    cached = getattr(cache, "self_attention_cache", cache)
    # a static cache counts in a tensor, in place
    seen = cached.get_seq_length(module.layer_idx) + 0
    dummy = _no_keys(hidden, hidden.shape[module.batch_axis], length)
    keys = cached.update(dummy, dummy, module.layer_idx)[0].shape[-2]
    if cached is cache or call.get("encoder_hidden_states") is None:
        return seen, keys
    return seen, keys, _remember_source(module, cache, call["encoder_hidden_states"])


def _remember_source(module: Any, cache: Any, source: torch.Tensor) -> int:
    """Let the cache hold that the encoder's keys were seen; return their length."""
    length = source.shape[1 - module.batch_axis]
    if hasattr(cache, "is_updated") and not cache.is_updated.get(module.layer_idx):
        dummy = _no_keys(source, source.shape[module.batch_axis], length)
        cache.cross_attention_cache.update(dummy, dummy, module.layer_idx)
        cache.is_updated[module.layer_idx] = True
    return length


def _no_keys(states: torch.Tensor, batch: int, length: int) -> torch.Tensor:
    # a cache of zero heads would report that no token was seen
    return states.new_zeros(batch, 1, length, 1)


class RelativeShared(Shared):
    """T5: the first layer computes a position bias for every head of every layer and lends it."""

    has_relative_attention_bias: bool
    whole_bias: torch.Tensor

    def compute_bias(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """This layer's share of the bias; the whole of it is kept to be lent."""
        self.whole_bias = self.base_class.compute_bias(self, *args, **kwargs)
        index = torch.tensor(self.kept_heads, dtype=torch.long, device=self.whole_bias.device)
        return self.whole_bias.index_select(1, index)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The base's forward pass on this layer's share, returning the whole position bias."""
        call = self.named_arguments(args, kwargs)
        lent = call.get("position_bias")
        if lent is None and not self.has_relative_attention_bias:
            # cross-attention has none: zeros that fit layers of any number of heads
            hidden = hidden_states(call)
            lent = call["position_bias"] = hidden.new_zeros(1, 1, 1, 1)
        out, _, *rest = self.base_class.forward(self, **self.take_share(call))
        if lent is None:
            lent = self.__dict__.pop("whole_bias")
        return (out, lent, *rest)


class RelativeSkipped(Mixin):
    """T5 without heads: it still computes the position bias that it lends to the others."""

    has_relative_attention_bias: bool
    compute_bias: Any

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """(zeros, position bias, attention weights)."""
        call = self.named_arguments(args, kwargs)
        hidden = hidden_states(call)
        seen, keys = remember(self, call, hidden)
        queries = hidden.shape[1]
        bias = call.get("position_bias")
        if bias is None and self.has_relative_attention_bias:
            bias = self.compute_bias(queries, keys, hidden.device, seen)
        elif bias is None:
            bias = hidden.new_zeros(1, 1, 1, 1)
        weights = None
        if self.config._attn_implementation == "eager":
            weights = hidden.new_zeros(hidden.shape[0], 0, queries, keys)
        out = torch.zeros_like(hidden)
        if self.own_out is not None and getattr(self, self.own_out).bias is not None:
            out = out + getattr(self, self.own_out).bias
        if self.linear_path is not None:
            out = self.linear_path.add(self, (), out)
        return out, bias, weights


MIXINS = {
    "share": Shared,
    "relative-share": RelativeShared,
    "skip": Skipped,
    "relative-skip": RelativeSkipped,
}


class Pruned(Mixin):
    """A model with heads missing. Made by `pruned_class`; looks like its base class."""

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        # mixed_class() wraps forward only; the base's own __init__ builds the full model, for which
        # the numbers per layer that servers read (`per_layer_config`) do not hold
        per_layer = vars(config).pop("_heterogeneity_spec", None)
        self.base_class.__init__(self, config, *args, **kwargs)
        if per_layer is not None:
            config._heterogeneity_spec = per_layer
        cut_model(self, sites_in(config))
        add_parts(self, config)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The base's forward pass, without what transformers 5 takes and ignores."""
        if kwargs.get("head_mask") is not None or kwargs.get("decoder_head_mask") is not None:
            raise ValueError(
                "head_mask has no effect in transformers 5; gate heads with headcount.gate(model, "
                "mask) or remove them with headcount.remove(model, mask)."
            )
        if kwargs.get("output_attentions") and self.config._attn_implementation != "eager":
            raise ValueError(
                f"output_attentions returns nothing under {self.config._attn_implementation} "
                "attention; call model.set_attn_implementation('eager') first."
            )
        return self.base_class.forward(self, *args, **kwargs)

    def _init_weights(self, module: Any) -> None:
        """Initialise as the base class does, where there is something to initialise."""
        # some divide by the number of inputs, which is 0 where no head is left
        if all(parameter.numel() for parameter in module.parameters(recurse=False)):
            self.base_class._init_weights(self, module)

    def save_pretrained(self, save_directory: Any, *args: Any, **kwargs: Any) -> None:
        """Save as the base class does."""
        # in the original format ViT's weights get names that a cut model does not find again
        kwargs.setdefault("save_original_format", False)
        self.base_class.save_pretrained(self, save_directory, *args, **kwargs)


def settings_of(model: Any) -> Any:
    """What holds a model's instructions: its config; a module without one holds them itself."""
    config = getattr(model, "config", None)
    return config if isinstance(config, PreTrainedConfig) else model


def sites_in(config: Any) -> list[dict[str, Any]]:
    """The instructions in a config; none for a model that has all its heads."""
    return (getattr(config, "headcount", None) or {"sites": []})["sites"]


def biases_in(config: Any) -> list[str]:
    """Paths of the projections that got a bias."""
    return (getattr(config, "headcount", None) or {}).get("biases", [])


class WrittenPath(TypedDict):
    """A linear path as the config says it: whose it is, and its sizes."""

    path: str
    out: str
    width: int
    rank: int


def paths_in(config: Any) -> list[WrittenPath]:
    """The linear paths beside heads: where, and how wide."""
    return (getattr(config, "headcount", None) or {}).get("linear", [])


def add_parts(model: Any, config: Any) -> None:
    """Add what the class does not give the model: biases and linear paths, all zero."""
    add_biases(model, biases_in(config))
    add_paths(model, paths_in(config))


def add_paths(model: Any, paths: Sequence[WrittenPath]) -> None:
    """Give attention modules a linear path; one that is there goes on with the projection."""
    for written in paths:
        module, out = find_module(model, written["path"]), find_module(model, written["out"])
        if module is None or out is None:
            continue
        path = getattr(module, "linear_path", None)
        if path is None:
            like = next(model.parameters())
            outputs = out.nf if _is_transposed(out) else out.out_features
            path = LinearPath(written["width"], outputs, written["rank"])
            module.linear_path = path.to(like.device, like.dtype)
            module.register_forward_pre_hook(path.see, with_kwargs=True)
        # heads may have been removed since, and the projection with them
        if not any(getattr(h, "__self__", None) is path for h in out._forward_hooks.values()):
            out.register_forward_hook(path.add)


def add_biases(model: Any, paths: Sequence[str]) -> None:
    """Give linear layers a bias of zeros."""
    for path in paths:
        layer = find_module(model, path)
        if layer is None or layer.bias is not None:
            continue
        like = layer.weight
        if isinstance(layer, NoWeights):
            # with a bias it has something to save: it becomes a child of its module
            above, _, name = path.rpartition(".")
            parent, like = find_module(model, above), next(model.parameters())
            vars(parent).pop(name, None)
            setattr(parent, name, layer)
        layer.bias = nn.Parameter(like.new_zeros(layer.weight.shape[0]))


def cut_model(model: Any, sites: list[dict[str, Any]]) -> None:
    """Carry out all instructions on a full model."""
    empty: dict[int, torch.Tensor] = {}
    for site in sites:
        cut_site(model, site, empty)
    for key, source in [*(getattr(model, "all_tied_weights_keys", None) or {}).items()]:
        layer, first = (model.get_submodule(name.rpartition(".")[0]) for name in (key, source))
        if isinstance(layer, NoWeights):  # what it shares is no parameter that could be tied later
            layer.weight = first.weight
            del model.all_tied_weights_keys[key]
