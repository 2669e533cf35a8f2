from __future__ import annotations

import pytest
import torch
from torch import nn

from headcount.models import partial
from headcount.models.find import layout, sites_of
from headcount.models.hooks import evaluating
from headcount.models.layers import block_of
from headcount.models.partial import Stages
from headcount.models.probe import probe_inputs
from headcount.models.remove import remove
from headcount.recovery.recover import recover_layers
from models.zoo import FAMILIES, build, mixed


def batches(model, count=3):
    return [probe_inputs(model, batch=4, length=10, seed=seed) for seed in range(count)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_recovered_as_by_whole_runs(family, monkeypatch):
    model = build(family)
    keep = mixed(layout(model))
    quick = remove(model, keep)
    recover_layers(quick, model, batches(model))
    slow = remove(model, keep)
    monkeypatch.setattr(partial, "block_of", lambda *_: None)
    recover_layers(slow, model, batches(model))
    for (name, one), two in zip(quick.named_parameters(), slow.parameters(), strict=True):
        assert torch.equal(one, two), name
    assert not any("forward" in module.__dict__ for module in [*model.modules(), *quick.modules()])


def computed(model, blocks):
    """How often each block's feed-forward part runs, which settled blocks do without."""
    counts = [0] * len(blocks)

    def count(place):
        def add(*_):
            counts[place] += 1

        return add

    handles = [
        block.intermediate.register_forward_hook(count(place)) for place, block in enumerate(blocks)
    ]
    return counts, handles


def test_a_settled_block_is_computed_once_for_every_batch():
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    counts, handles = computed(model, model.bert.encoder.layer)
    recover_layers(small, model, batches(model, 5))
    for handle in handles:
        handle.remove()
    # 5 batches; one run more at the start; the first batch whole again at every layer further up
    assert counts == [5 + 1 + 2, 5 + 1 + 2, 5 + 1 + 1, 1]


def test_the_first_run_is_whole_and_the_next_starts_from_it():
    model = build("bert")
    sites = sites_of(model)
    run = Stages(model, sites)
    inputs = batches(model, 1)[0]
    with torch.no_grad(), evaluating(model):
        run.run_to(sites[0], 1, 1, inputs, "output")
        assert run.kept[1] == {}
        run.run_to(sites[2], 1, 1, inputs, "output")
        path, (last, given) = "bert.encoder.layer", run.kept[1]["bert.encoder.layer"]
        assert (block_of(model, sites[2].path), last) == ((path, 2), 1)
        run.kept[1][path] = (last, torch.zeros_like(given))
        wrong = run.run_to(sites[3], 1, 1, inputs, "output")[0]
        right = Stages(model, sites).run_to(sites[3], 1, 0, inputs, "output")[0]
    assert not torch.allclose(wrong, right)


def test_a_model_whose_blocks_are_not_all_is_run_whole():
    """What a block gave is not all that the next one gets: the first block's output comes back."""
    model = build("bert")
    first = []
    model.bert.encoder.layer[0].register_forward_hook(lambda _m, _a, out: first.append(out))

    def mix(_, args, kwargs):
        return (args[0] + first[-1], *args[1:]), kwargs

    model.bert.encoder.layer[3].register_forward_pre_hook(mix, with_kwargs=True)
    sites = sites_of(model)
    inputs = batches(model, 1)[0]
    run = Stages(model, sites)
    with torch.no_grad(), evaluating(model):
        for site in sites:
            found = run.run_to(site, 1, 0, inputs, "output")
            expected = Stages(model, sites).run_to(site, 1, 0, inputs, "output")
            assert torch.equal(found[0], expected[0])
    assert run.whole
    assert not run.kept


def test_a_forward_of_ones_own_is_put_back():
    model = build("bert")
    block = model.bert.encoder.layer[0]
    own = block.forward
    block.forward = own
    recover_layers(remove(model, mixed(layout(model))), model, batches(model))
    assert block.__dict__["forward"] is own


def test_no_list_of_blocks():
    assert block_of(nn.Sequential(nn.Linear(1, 1)), "0") is None


def test_what_a_hook_does_to_a_block_is_done_once():
    """A kept output goes through the block's hooks again: they must not have been applied to it."""
    model = build("bert")
    for block in model.bert.encoder.layer:
        block.register_forward_hook(lambda _m, _a, out: out * 1.5)
    sites = sites_of(model)
    inputs = batches(model, 1)[0]
    run = Stages(model, sites)
    with torch.no_grad(), evaluating(model):
        for place, site in enumerate(sites):
            found = run.run_to(site, 1, 0, inputs, "output")
            expected = Stages(model, sites[place:]).run_to(site, 1, 0, inputs, "output")
            assert torch.equal(found[0], expected[0])
    assert not run.whole
