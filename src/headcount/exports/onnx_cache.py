"""Export as `model.onnx` with its key-value cache as inputs and outputs: one token at a time.

The names are those of optimum: `past_key_values.3.key` goes in, `present.3.key` comes out, both
(batch, key-value heads, length, size) with the heads that layer 3 has left; a layer without heads
has neither. The first call has a past of length 0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from headcount.base.errors import UnsupportedError
from headcount.exports.checkpoint import plain_class
from headcount.exports.formats import ReadBack
from headcount.exports.graph import refusing, silenced
from headcount.exports.inputs import Feeds, Probes
from headcount.exports.onnx import Onnx, compute_wide
from headcount.models.capture import eager
from headcount.models.find import sites_of
from headcount.models.hooks import evaluating
from headcount.models.probe import TOLERANCE, relative_difference

Step = Callable[..., list[Tensor]]
STEPS = 4
"""Tokens of each row that are verified one at a time, behind the others at once."""
PLAIN = ("input_ids", "attention_mask", "position_ids")
PARTS = ("key", "value")
FIRST = """inputs["position_ids"] = inputs["attention_mask"].cumsum(-1) - 1
for put in session.get_inputs():
    if put.name.startswith("past"):
        shape = len(inputs["input_ids"]), put.shape[1], 0, put.shape[3]
        inputs[put.name] = numpy.zeros(shape, "float32")
inputs = {put.name: inputs[put.name] for put in session.get_inputs()}"""


@dataclass(frozen=True)
class CachedLayer:
    """A layer that keeps keys and values, and the axes of one token of one row."""

    number: int
    groups: int
    key: int
    value: int


class OnnxCache(Onnx):
    """model.onnx of a decoder, with keys and values that go in and come out."""

    imports = "import numpy\nimport onnxruntime"
    selects = FIRST
    calls = "logits, *present = session.run(None, inputs)  # which is the past of the next token"

    def write(self, model: PreTrainedModel, folder: Path, probes: Probes) -> ReadBack:
        """The traced graph, turned into ONNX and run token by token in onnxruntime."""
        import onnxruntime

        layers, count = cached_layers(model)
        file, stepped = folder / "model.onnx", CachedForward(model, layers, count)
        names = [f"{one.number}.{part}" for one in layers for part in PARTS]
        inputs = [*stepped.plain, *(f"past_key_values.{name}" for name in names)]
        with refusing(model, "ONNX with a cache"), silenced(), evaluating(stepped), torch.no_grad():
            with eager(model):
                example = stepped.example(probes.feeds[0]["input_ids"])
                traced = torch.export.export(stepped, example, dynamic_shapes=stepped.open_axes())
            outputs = ["logits", *(f"present.{name}" for name in names)]
            onnx = torch.onnx.export(traced, dynamo=True, verbose=False, output_names=outputs)
            assert onnx is not None  # it is where dynamo is asked for
            for put, name in zip(onnx.model.graph.inputs, inputs, strict=True):
                put.name = name
            onnx.rename_axes(_axis_words(onnx))
            if model.dtype != torch.bfloat16:
                compute_wide(onnx.model.graph)
            onnx.save(file)
            session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])

            def step(plain: Feeds, past: list[Tensor]) -> list[Tensor]:
                arrays = [tensor.numpy() for tensor in (*plain.values(), *past)]
                feeds = dict(zip(inputs, arrays, strict=True))
                known = {put.name for put in session.get_inputs()}
                feeds = {name: array for name, array in feeds.items() if name in known}
                return [torch.from_numpy(array) for array in session.run(None, feeds)]

            worst = max(_difference(model, stepped, step, feeds) for feeds in probes.feeds)
        if not worst <= max(1e-4, TOLERANCE.get(model.dtype, 1e-4)):
            raise UnsupportedError(
                f"headcount cannot export {type(model).__name__} ('{model.config.model_type}') to "
                f"ONNX with a cache: token by token its answers differ by {worst:.2g} of them."
            )
        return ReadBack(worst, f"token by token, {STEPS} tokens behind every text")


def _axis_words(onnx: torch.onnx.ONNXProgram) -> dict[Any, str]:
    """{symbol of an axis in the graph: a word for it}."""
    words: dict[object, str] = {}
    for put in onnx.model.graph.inputs:
        assert put.name is not None
        assert put.shape is not None
        past = put.name.startswith("past")
        length = "past_length" if past else "length"
        length = "past_and_length" if put.name == "attention_mask" else length
        words.setdefault(str(put.shape[0]), "batch")
        words.setdefault(str(put.shape[2 if past else 1]), length)
    return words


def _difference(model: PreTrainedModel, stepped: CachedForward, step: Step, feeds: Feeds) -> float:
    """The largest difference of the logits, when the last tokens go in one at a time."""
    ids = feeds["input_ids"]
    mask = feeds.get("attention_mask", torch.ones_like(ids))
    # padding goes to the left, where those who generate have it
    order = mask.argsort(dim=1, stable=True)
    ids, mask = ids.gather(1, order), mask.gather(1, order)
    behind = min(STEPS, ids.shape[1] - 1)
    past = [tensor for pair in stepped.past(len(ids)) for tensor in pair]
    start, worst = 0, 0.0
    expected = model(**stepped.named(ids, mask)).logits.masked_fill((mask == 0)[..., None], 0)
    for end in range(ids.shape[1] - behind, ids.shape[1] + 1):
        logits, *past = step(stepped.named(ids[:, start:end], mask[:, :end]), past)
        logits = logits.masked_fill((mask[:, start:end] == 0)[..., None], 0)
        worst = max(worst, relative_difference([expected[:, start:end]], [logits]))
        start = end
    return worst


def cached_layers(model: PreTrainedModel) -> tuple[list[CachedLayer], int]:
    """The layers whose keys and values are kept, and how many layers the model has."""
    kind, sites = plain_class(model).__name__, sites_of(model)
    refusal = (
        f"headcount cannot export {kind} ('{model.config.model_type}') to ONNX with a cache: it "
        "writes decoders alone whose layers keep keys and values only. Export to onnx."
    )
    if {site.stack for site in sites} != {"decoder"} or not model.can_generate():
        raise UnsupportedError(refusal)
    with torch.no_grad(), evaluating(model):
        ids = torch.ones(1, 2, dtype=torch.long, device=model.device)
        cache = model(input_ids=ids, use_cache=True).get("past_key_values")
    if not isinstance(cache, DynamicCache) or len(cache.layers) != len(sites):
        raise UnsupportedError(refusal)
    layers = []
    for number, (site, layer) in enumerate(zip(sites, cache.layers, strict=True)):
        keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
        if keys is None or values is None or keys.ndim != 4 or keys.shape[2] != 2:
            raise UnsupportedError(refusal)
        if site.heads:
            size = CachedLayer(number, keys.shape[1], keys.shape[3], values.shape[3])
            layers.append(size)
    return layers, len(sites)


class CachedForward(nn.Module):
    """A decoder as a function of its tokens and of the keys and values of those before."""

    def __init__(self, model: PreTrainedModel, layers: list[CachedLayer], count: int) -> None:
        super().__init__()
        self.model, self.layers, self.count = model, layers, count
        takes = inspect.signature(plain_class(model).forward).parameters
        self.plain = [name for name in PLAIN if name in takes]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        position_ids: Tensor | None,
        past: list[tuple[Tensor, Tensor]],
    ) -> list[Tensor]:
        """The logits, then keys and values of every layer that has heads."""
        named = {"input_ids": input_ids, "attention_mask": attention_mask}
        if position_ids is not None:
            named["position_ids"] = position_ids
        ids, mask = named["input_ids"], named["attention_mask"]
        # where no head is left the cache counts tokens all the same
        seen = past[0][0].shape[2] if past else mask.shape[1] - ids.shape[1]
        none = torch.zeros(ids.shape[0], 1, seen, 1, dtype=self.model.dtype)
        kept = {one.number: pair for one, pair in zip(self.layers, past, strict=True)}
        cache = DynamicCache()
        for number in range(self.count):
            layer = DynamicLayer()
            layer.lazy_initialization(none, none)
            layer.keys, layer.values = kept.get(number, (none, none))
            cache.layers.append(layer)
        out = self.model(**named, past_key_values=cache, use_cache=True)
        layers = [out.past_key_values.layers[one.number] for one in self.layers]
        return [out.logits, *(part for layer in layers for part in (layer.keys, layer.values))]

    def named(self, ids: Tensor, mask: Tensor) -> Feeds:
        """The inputs that the model takes; `mask` may be longer than the tokens by those before."""
        positions = (
            (mask.cumsum(1) - 1).clamp_min(0)[:, -ids.shape[1] :].clone()
        )  # a view would be traced as one
        return dict(zip(PLAIN[: len(self.plain)], (ids, mask, positions), strict=False))

    def example(self, ids: Tensor) -> tuple[object, ...]:
        """What `forward` takes, each axis of another size: 3 rows, 5 tokens behind 7."""
        ids = ids[:1, :1].expand(3, 5).contiguous()
        plain = self.named(ids, ids.new_ones(3, 12))
        return *(plain.get(name) for name in PLAIN), self.past(3, 7)

    def past(self, rows: int, length: int = 0) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of zeros; before the first token none."""

        def zeros(one: CachedLayer, size: int) -> Tensor:
            return torch.zeros(rows, one.groups, length, size, dtype=self.model.dtype)

        return [(zeros(one, one.key), zeros(one, one.value)) for one in self.layers]

    def open_axes(self) -> tuple[object, ...]:
        """Which axes of what `forward` takes may have any size."""
        free = torch.export.Dim.DYNAMIC
        plain = [{0: free, 1: free} if name in self.plain else None for name in PLAIN]
        return *plain, [({0: free, 2: free},) * 2 for _ in self.layers]
