from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import headcount as hc
from headcount.costs.bench import weight_bytes
from headcount.costs.per_head import head_bytes, head_times
from models.zoo import build


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5"])
def test_bytes_are_those_that_go(family: str) -> None:
    model = build(family)
    layout = hc.layout(model)
    group = {stack.name: stack.heads[0] // stack.groups[0] for stack in layout.stacks}
    gone = [head for head in layout if head.index < 2 * group[head.stack]]
    small = hc.remove(model, hc.Mask.full(layout).drop(gone))
    sizes = dict(zip(layout, head_bytes(model, layout), strict=True))
    bias = family == "t5"  # its first layer keeps the position bias whole; see models/cut.py
    spared = weight_bytes(model) - weight_bytes(small)
    assert sum(sizes[head] for head in gone) == pytest.approx(spared, abs=1e4 if bias else 0.5)
    assert min(sizes.values()) > 0


def test_milliseconds_are_the_difference_shared_among_what_went() -> None:
    """With a clock that a forward pass moves on by a thousandth of its heads."""
    model = build("t5")
    layout = hc.layout(model)
    now = [0.0]
    runs: Counter[int] = Counter()

    def clock() -> float:
        return now[0]

    import headcount.costs.per_head as room

    plain = room.TimedVariant

    def way(*, name: str, run, **more):
        weight = {"encoder": 1.0, "cross": 2.0, "decoder": 4.0}
        stack = name.split("/")[0]
        spared = 0 if not name else 2 * 4 * weight[stack]  # half of 4 heads in 4 layers

        def move() -> None:
            runs[len(runs)] += 1
            now[0] += (100 - spared) / 1000

        return plain(name=name, run=move, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "TimedVariant", way)
        found = head_times(model, layout, batch=2, length=6, rounds=6, clock=clock)
    by_stack = {head.stack: value for head, value in zip(layout, found.median, strict=True)}
    assert by_stack == pytest.approx({"encoder": 1.0, "cross": 2.0, "decoder": 4.0})
    np.testing.assert_allclose(found.low, found.median)
    np.testing.assert_allclose(found.stderr, 0, atol=1e-9)
    assert found.reads == "2 x 6 tokens"


def test_a_real_clock_gives_a_number_for_every_head() -> None:
    model = build("llama")
    found = head_times(model, hc.layout(model), batch=2, length=8, rounds=6)
    assert found.median.shape == (len(hc.layout(model)),)
    assert np.isfinite(found.median).all()
    assert (found.low <= found.median).all()
    assert (found.median <= found.high).all()
