"""How fast does a decoder write? A prefill, and tokens after it through the cache, in one run.

    found = time_generating(model, {"50 %": (mask, small)}, batch=16, length=1024)
    found.rows[-1].tokens_per_second, found.rows[-1].cache

The prefill is bounded by FLOPs, a token after it by the bytes that are read for it: the weights and
the keys and values of all users (`serving.py`). Every measurement of tokens starts from the same
cache of `length` tokens.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from transformers import Cache, PreTrainedModel

from headcount.base.errors import UsageError
from headcount.costs.bench import DENSE, weight_bytes
from headcount.costs.cost import Cost, cost
from headcount.costs.flops import DEFAULT_LENGTH, fitting_length, inputs_at
from headcount.costs.serving import ServingCost
from headcount.costs.shapes import shapes_of
from headcount.costs.timed import BenchResult, BenchRow, Phase, Shape
from headcount.costs.timing import TimedVariant, alternate, check_rounds, ratios, seconds
from headcount.heads import Mask
from headcount.models.cached import cache_of

STEPS = 8
"""Tokens of a measurement, one after the other."""
Removed = Mapping[str, tuple[Mask, PreTrainedModel]]


def time_generating(
    dense: PreTrainedModel,
    removed: Removed,
    *,
    batch: int | Sequence[int] = 8,
    length: int | Sequence[int] | None = None,
    rounds: int = 15,
    timing_seconds: float = 0.0,
    seed: int = 0,
    **clock: Any,
) -> BenchResult:
    """Time `dense` and the `removed` models as `time_removed` does: each shape in two phases."""
    check_rounds(rounds)
    models = {DENSE: dense} | {f"removed {name}": small for name, (_, small) in removed.items()}
    shapes: list[Shape] = []
    wait = torch.cuda.synchronize if dense.device.type == "cuda" else None
    for examples, tokens in shapes_of(batch, length):
        counted = count_generating(dense, examples, tokens)
        masks = {DENSE: Mask.full(counted.layout)}
        masks |= {f"removed {name}": mask for name, (mask, _) in removed.items()}
        inputs = inputs_at(dense, batch=examples, length=counted.length, seed=seed)["input_ids"]
        served = {name: serving(model, counted, examples) for name, model in models.items()}
        phases: dict[Phase, Callable[..., Callable[[], Any]]]
        phases = {"prefill": _prefill, "decode": _decode}
        for phase, run_of in phases.items():
            ways = [
                TimedVariant(name=name, run=run_of(model, inputs), wait=wait)
                for name, model in models.items()
            ]
            times = alternate(ways, rounds=rounds, timing_seconds=timing_seconds, **clock)
            if phase == "decode":
                times = {
                    name: [took / STEPS for took in rounds_] for name, rounds_ in times.items()
                }
            took, shares = seconds(times, DENSE), ratios(times, DENSE)
            rows = tuple(
                BenchRow(
                    name=name,
                    kind=DENSE if name == DENSE else "removed",
                    heads=len(masks[name]),
                    sparsity=masks[name].sparsity,
                    seconds=took[name],
                    ratio=shares[name],
                    ideal=ideal(phase, dense, counted, masks[name], served[name]),
                    parameters=sum(weight.numel() for weight in model.parameters()),
                    memory=weight_bytes(model),
                    cache=served[name].cache,
                    tokens=examples * (counted.length if phase == "prefill" else 1),
                )
                for name, model in models.items()
            )
            left = ideal(phase, dense, counted, Mask(counted.layout, frozenset()), None)
            shapes.append(
                Shape(
                    batch=examples,
                    length=counted.length,
                    reads=counted.reads,
                    rounds=len(times[DENSE]),
                    share=None if left is None else 1 - left,
                    ceiling=1 / left if left else None,
                    rows=rows,
                    phase=phase,
                )
            )
    return BenchResult(
        model=type(dense).__name__,
        device=str(dense.device),
        threads=torch.get_num_threads(),
        shapes=tuple(shapes),
    )


def count_generating(model: PreTrainedModel, batch: int, length: int | None) -> Cost:
    """What a decoder costs at a context of `length` tokens that leaves room for the next ones."""
    if length is None:
        try:
            length = fitting_length(model.config, DEFAULT_LENGTH + STEPS) - STEPS
        except UsageError:
            length = fitting_length(model.config, None) - STEPS
    fitting_length(model.config, length + STEPS)
    counted = cost(model, length=length, context=length, batch=batch)
    if model.config.is_encoder_decoder:
        raise UsageError(f"--generate times decoders, and {counted.model} has an encoder, too.")
    return counted


def serving(model: PreTrainedModel, counted: Cost, batch: int) -> ServingCost:
    """What `model` reads for a token at the context that was counted."""
    served = cost(model, length=1, context=counted.length, batch=batch).serving
    assert served is not None  # it was asked for
    return served


def ideal(
    phase: Phase, dense: PreTrainedModel, counted: Cost, mask: Mask, served: ServingCost | None
) -> float | None:
    """The least time of a phase as a share of the dense model's: FLOPs, or the bytes of a token."""
    whole = counted.serving
    assert whole is not None  # it was asked for
    if phase == "decode":
        read = whole.read * (1 - whole.most["all heads"].read) if served is None else served.read
        return read / whole.read
    after = counted.flops_with(mask)
    if after is None or counted.flops is None:
        return None
    unused = 0
    out: Any = dense.get_output_embeddings()
    if _last_only(dense) and out is not None:
        # only the last token's logits are computed; FLOPs are counted for all of them
        unused = 2 * (counted.length - 1) * out.weight.numel()
    return (after - unused) / (counted.flops - unused)


def _last_only(model: PreTrainedModel) -> dict[str, int]:
    named = "logits_to_keep" in inspect.signature(model.forward).parameters
    return {"logits_to_keep": 1} if named else {}


def _prefill(model: Any, ids: torch.Tensor) -> Callable[[], Any]:
    last = _last_only(model)
    return lambda: model(input_ids=ids, use_cache=True, **last)


def _decode(model: Any, ids: torch.Tensor) -> Callable[[], None]:
    with torch.inference_mode():
        filled = cache_of(model, _prefill(model, ids)())
    token = ids[:, :1]

    def run() -> None:
        cache = _copied(filled)
        for _ in range(STEPS):
            model(input_ids=token, past_key_values=cache, use_cache=True)

    return run


def _copied(cache: Cache) -> Cache:
    """A cache with the same tensors: a step makes new ones, and changes none in place."""
    other = copy.copy(cache)
    other.layers = [copy.copy(layer) for layer in cache.layers]
    return other
