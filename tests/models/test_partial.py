from __future__ import annotations

import pytest
import torch

from headcount.models.hooks import evaluating
from headcount.models.layers import call_order, find_layers
from headcount.models.partial import Replay, driven
from headcount.models.probe import probe_inputs, run
from models.zoo import build


def test_a_block_asks_before_it_runs():
    model = build("bert")
    inputs, asked = probe_inputs(model), []

    def drive(key, call):
        asked.append((key, call.args[0].shape))
        return call()

    expected = run(model, inputs)
    with driven(dict(enumerate(model.bert.encoder.layer)), drive):
        assert torch.equal(run(model, inputs)[0], expected[0])
    assert [key for key, _ in asked] == [0, 1, 2, 3]
    assert {shape for _, shape in asked} == {(2, 7, 32)}
    assert not any("forward" in vars(block) for block in model.bert.encoder.layer)


def test_a_forward_of_ones_own_is_put_back():
    block = build("bert").bert.encoder.layer[0]
    own = block.forward
    block.forward = own
    with driven({0: block}, lambda key, call: call()):
        assert vars(block)["forward"] is not own
    assert vars(block)["forward"] is own


@pytest.mark.parametrize("family", ["bert", "albert", "llama"])
def test_a_replay_from_any_call_on_gives_the_whole_answer(family):
    model = build(family)
    inputs = probe_inputs(model, seed=3)
    layers = find_layers(model)
    replay = Replay(model, layers, call_order(model, layers, inputs))
    expected = run(model, inputs)[0]
    with torch.no_grad(), evaluating(model), replay.attached():
        for start in range(len(replay.calls)):
            assert torch.equal(replay.run(inputs, start)[0], expected)
        # what was kept is what it goes on from
        last = len(replay.calls) - 1
        kept = replay.outputs[last - 1]
        first = kept[0] if isinstance(kept, tuple) else kept
        first += 1
        assert not torch.equal(replay.run(inputs, last)[0], expected)
    assert replay.outputs == [None] * len(replay.calls)
