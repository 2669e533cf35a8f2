from __future__ import annotations

import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.models.capture import capture, collect
from headcount.models.find import layout
from headcount.models.gates import gate
from headcount.models.hooks import evaluating, held, hooked
from headcount.models.probe import probe_inputs, relative_difference, run
from models.zoo import build


@pytest.fixture
def bert():
    return build("bert")


@pytest.fixture
def elsewhere():
    """Runs a function in another thread and gives its answer, or raises what it raised."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda function, *args: pool.submit(function, *args).result(timeout=60)


class Restless(nn.Module):
    """Changes itself when it runs."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.kind = "sparse"
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x):
        self.inner, self.kind, self.steps = nn.Linear(2, 2), "full", self.steps + 1
        return self.inner(x)


def test_a_model_that_changes_itself_is_put_back():
    model = Restless()
    inner, steps = model.inner, model.steps
    with evaluating(model):
        model(torch.zeros(1, 2))
        assert model.inner is not inner
    assert model.inner is inner
    assert model.steps is steps
    assert model.kind == "sparse"
    assert model.training


def test_hooks_act_in_their_own_thread_only(elsewhere):
    layer, seen = nn.Linear(2, 2), []

    def note(*_):
        seen.append(threading.get_ident())

    with hooked([lambda: layer.register_forward_pre_hook(note)]):
        layer(torch.zeros(1, 2))
        elsewhere(layer, torch.zeros(1, 2))
    assert seen == [threading.get_ident()]


def test_hooks_act_in_threads_that_torch_starts():
    # autograd recomputes checkpoints in threads that Python has not started
    import _thread

    layer, seen, done = nn.Linear(2, 2), [], threading.Event()

    def call():
        layer(torch.zeros(1, 2))
        done.set()

    with hooked([lambda: layer.register_forward_pre_hook(lambda *_: seen.append(1))]):
        _thread.start_new_thread(call, ())
        assert done.wait(60)
    assert seen == [1]


def test_two_threads_gate_one_model_each_with_its_own_mask(bert, elsewhere):
    inputs = probe_inputs(bert)
    full = Mask.full(layout(bert))
    masks = [full.drop([("encoder", layer, 0)]) for layer in (0, 1)]

    def gated(mask):
        with gate(bert, mask):
            return run(bert, inputs)

    alone = [gated(mask) for mask in masks]
    plain = run(bert, inputs)
    with gate(bert, masks[0]):
        assert relative_difference(plain, elsewhere(run, bert, inputs)) == 0
        assert relative_difference(alone[1], elsewhere(gated, masks[1])) == 0
        assert relative_difference(alone[0], run(bert, inputs)) == 0


def test_layout_counts_its_own_runs_only(elsewhere, monkeypatch):
    albert = build("albert", num_hidden_layers=3, num_hidden_groups=1)
    own = type(albert).forward
    inputs = probe_inputs(albert)
    main = threading.get_ident()

    @functools.wraps(own)  # the probe reads its arguments
    def twice(self, *args, **kwargs):
        if threading.get_ident() == main:
            elsewhere(lambda: own(self, **inputs))
        return own(self, *args, **kwargs)

    monkeypatch.setattr(type(albert), "forward", twice)
    assert layout(albert)["encoder"].uses == (3,)


def test_a_model_in_training_is_refused_to_other_threads_while_it_is_evaluated(bert, elsewhere):
    bert.train()
    inputs = probe_inputs(bert)
    with evaluating(bert):
        with pytest.raises(UsageError, match=r"used in two threads .* in evaluation mode.*copy"):
            elsewhere(lambda: bert(**inputs))
        with pytest.raises(UsageError, match="used in two threads"):
            elsewhere(layout, bert)
        run(bert, inputs)
    assert all(module.training for module in bert.modules())
    elsewhere(lambda: bert(**inputs))


def test_capture_is_refused_where_another_thread_captures_or_runs(bert, elsewhere):
    inputs = probe_inputs(bert)
    with capture(bert, lambda *_: None):
        with pytest.raises(UsageError, match=r"used in two threads .* in eager attention"):
            elsewhere(collect, bert, inputs)
        with pytest.raises(UsageError, match="used in two threads"):
            elsewhere(lambda: bert(**inputs))
    assert bert.config._attn_implementation == "sdpa"
    assert elsewhere(collect, bert, inputs)


def test_eager_models_are_captured_in_two_threads_at_once(elsewhere):
    bert = build("bert", attention="eager")
    inputs, seen = probe_inputs(bert), []
    with capture(bert, lambda place, _: seen.append(place)), torch.no_grad():
        assert len(elsewhere(collect, bert, inputs)) == 4
        bert(**inputs)
    assert len(seen) == 4


def test_a_pass_under_way_in_another_thread_is_seen(bert):
    inside, go = threading.Event(), threading.Event()

    def wait(*_):
        inside.set()
        go.wait(60)

    handle = bert.bert.encoder.layer[0].register_forward_hook(wait)
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(run, bert, probe_inputs(bert))
        assert inside.wait(60)
        try:
            with pytest.raises(UsageError, match="used in two threads"), held(bert, "changed"):
                pass
        finally:
            handle.remove()
            go.set()
        under_way.result(timeout=60)
    with held(bert, "changed"), held(bert, "changed twice"):
        pass
