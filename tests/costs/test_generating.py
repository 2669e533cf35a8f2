from __future__ import annotations

from typing import Any

import pytest
import torch

import headcount as hc
from headcount.base.errors import UsageError
from headcount.costs.cost import cost, serving_cost
from headcount.costs.generating import STEPS, _decode, time_generating
from headcount.costs.speed import bench
from models.zoo import build

QUICK: dict[str, Any] = {"batch": 2, "length": 12, "repeats": 6, "timing_seconds": 0}


def half(model: Any) -> hc.Mask:
    """The first half of the key-value heads of every layer."""
    stack = hc.layout(model)["decoder"]
    heads = [
        hc.Head("decoder", layer, h) for layer, n in enumerate(stack.heads) for h in range(n // 2)
    ]
    return hc.Mask.of(hc.layout(model), heads)


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral"])
def test_a_prefill_and_tokens_after_it(family: str) -> None:
    model = build(family)
    mask = half(model)
    small = hc.remove(model, mask)
    found = bench(model, small, generate=True, batch=[1, 3], length=12, repeats=6, timing_seconds=0)
    assert [(s.phase, s.batch, s.length) for s in found.shapes] == [
        ("prefill", 1, 12), ("decode", 1, 12), ("prefill", 3, 12), ("decode", 3, 12),
    ]  # fmt: skip
    assert {row.name for row in found.rows} == {"dense", "removed 50.0 %"}
    prefill, decode = found.shapes[2:]
    whole, after = (serving_cost(m, context=12, batch=3) for m in (model, small))
    assert decode.rows[1].ideal == after.read / whole.read
    assert decode.share == pytest.approx(whole.most["all heads"].read)
    assert decode.ceiling == pytest.approx(whole.most["all heads"].speedup)
    assert [row.cache for row in decode.rows] == [whole.cache, after.cache]
    # all but the last token's logits are left out, so the heads are more of the FLOPs
    assert (prefill.share or 0) > (cost(model, length=12).share or 1)
    for shape, tokens in ((prefill, 3 * 12), (decode, 3)):
        for row in shape.rows:
            rate = row.tokens_per_second
            assert rate is not None
            assert rate.median == pytest.approx(tokens / row.seconds.median)
    written: Any = found.to_json()["timings"]
    assert {row["phase"] for row in written} == {"prefill", "decode"}


def test_the_flops_of_a_prefill_are_those_of_one_logit() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = build("llama", attention="eager")
    mask = half(model)
    found = time_generating(
        model, {"half": (mask, hc.remove(model, mask))}, batch=1, length=16, rounds=6
    )
    ids = torch.ones(1, 16, dtype=torch.long)
    flops = []
    for one in (model, hc.remove(model, mask)):
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            one(input_ids=ids, use_cache=True, logits_to_keep=1)
        flops.append(counter.get_total_flops())
    assert found.shapes[0].rows[1].ideal == pytest.approx(flops[1] / flops[0])


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_every_measurement_starts_from_the_same_cache(family: str) -> None:
    model, lengths = build(family), []
    ids = torch.randint(5, 60, (2, 9), generator=torch.Generator().manual_seed(0))
    run = _decode(model, ids)
    model.register_forward_pre_hook(
        lambda module, args, kwargs: lengths.append(kwargs["past_key_values"].get_seq_length()),
        with_kwargs=True,
    )
    with torch.no_grad():
        run()
        run()
    assert lengths == 2 * [9 + step for step in range(STEPS)]


def test_without_a_pruned_model_whole_key_value_heads_go() -> None:
    model = build("llama")
    found = bench(model, ratio=[0.5, 1], generate=True, **QUICK)
    dense, small, none = found.shapes[1].rows
    assert (small.heads, none.heads, none.cache) == (dense.heads // 2, 0, 0)
    assert small.cache == (dense.cache or 0) // 2


def test_by_default_the_context_leaves_room_for_the_next_tokens() -> None:
    found = bench(build("gpt2"), ratio=1, generate=True, **{**QUICK, "length": None})
    assert found.shapes[0].length == 64 - STEPS


@pytest.mark.parametrize(
    ("family", "settings", "words"),
    [
        ("bert", {}, "has no decoder that keeps keys"),
        ("t5", {}, "has an encoder, too"),
        ("gpt2", {"length": 60}, "takes 64 tokens, not 68"),
        ("llama", {"onnx": True}, "leave out --onnx"),
    ],
)
def test_what_does_not_write_is_refused(family: str, settings: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        bench(build(family), ratio=0.5, generate=True, **QUICK | settings)
