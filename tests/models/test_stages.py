from __future__ import annotations

from functools import partial

import pytest
import torch

from headcount.models import stages
from headcount.models.find import layout, sites_of
from headcount.models.hooks import evaluating
from headcount.models.probe import probe_inputs
from headcount.models.probe import run as run_plain
from headcount.models.remove import remove
from headcount.models.stages import Stages, UnsteadyError
from headcount.repair.recovery import recover_layers
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
    monkeypatch.setattr(stages, "block_of", lambda *_: None)
    recover_layers(slow, model, batches(model))
    for (name, one), two in zip(quick.named_parameters(), slow.parameters(), strict=True):
        assert torch.equal(one, two), name
    assert not any("forward" in module.__dict__ for module in [*model.modules(), *quick.modules()])


def computed(blocks):
    """How often each block's feed-forward part runs."""
    counts = [0] * len(blocks)

    def count(place):
        def add(*_):
            counts[place] += 1

        return add

    for place, block in enumerate(blocks):
        block.intermediate.register_forward_hook(count(place))
    return counts


def test_every_block_is_computed_once_for_every_batch():
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    full, cut_down = computed(model.bert.encoder.layer), computed(small.bert.encoder.layer)
    recover_layers(small, model, batches(model, 5))
    # 5 batches, and one of them again to see that whole runs show the same, up to the last site
    assert full == [5 + 1, 5 + 1, 5 + 1, 5]
    assert cut_down == [5 + 1, 5 + 1, 5 + 1, 0]


def test_a_batch_enters_the_model_once(monkeypatch):
    model = build("bert")
    small = remove(model, mixed(layout(model)))
    passes = {"full": 0, "small": 0}
    for name, each in (("full", model), ("small", small)):

        def count(*_, name=name):
            passes[name] += 1

        each.bert.embeddings.register_forward_hook(count)
    recover_layers(small, model, batches(model, 5))
    assert passes == {"full": 5 + 1, "small": 5 + 1}


def test_every_site_shows_what_a_whole_run_shows():
    model = build("t5")
    sites = sites_of(model)
    one, two = batches(model, 2)
    run = Stages(model, sites, "output")
    with torch.no_grad(), evaluating(model):
        uses = run.explore(one)
        order = sorted(sites, key=lambda site: list(uses).index(site.path))
        for site in order:
            for number, inputs in enumerate([one, two]):
                plain = Stages(model, sites, "output", whole=True)
                found = run.run_to(site, 1, number, inputs)
                assert torch.equal(found[0], plain.run_to(site, 1, number, inputs)[0])
        assert run.shortened
        assert run.holds()
        number, inputs, seen = run.tried
        assert (number, inputs, set(seen)) == (1, two, set(uses))
        run.tried = number, inputs, {path: [x[0] + 1e-6] for path, x in seen.items()}
        assert not run.holds()


def with_more_between(model):
    """The first block's output comes back in the last one: blocks do not pass on everything."""
    first = []
    model.bert.encoder.layer[0].register_forward_hook(lambda _m, _a, out: first.append(out))

    def mix(_, args, kwargs):
        return (args[0] + first[-1], *args[1:]), kwargs

    model.bert.encoder.layer[3].register_forward_pre_hook(mix, with_kwargs=True)
    return model


def explored(model, count=2):
    """The stages of a model's sites, with all batches run up to the last one."""
    sites = sites_of(model)
    run = Stages(model, sites, "output")
    given = batches(model, count)
    with torch.no_grad(), evaluating(model):
        run.explore(given[0])
        for site in sites:
            for number, inputs in enumerate(given):
                run.run_to(site, 1, number, inputs)
        return run, run.holds()


def test_a_model_that_does_more_between_its_blocks_is_found_out():
    assert explored(build("bert"))[1]
    run, holds = explored(with_more_between(build("bert")))
    assert ("bert.encoder.layer", 3) not in run.recipes
    assert not holds


def test_such_a_model_is_recovered_by_whole_runs(monkeypatch):
    model = with_more_between(build("bert"))
    keep = mixed(layout(model))
    quick, slow = remove(model, keep), remove(model, keep)
    fits = recover_layers(quick, model, batches(model))
    monkeypatch.setattr(stages, "block_of", lambda *_: None)
    assert recover_layers(slow, model, batches(model)) == fits
    for (name, one), two in zip(quick.named_parameters(), slow.parameters(), strict=True):
        assert torch.equal(one, two), name


class Adding(torch.nn.Module):
    def forward(self, x):
        return x.add_(1)


def test_what_is_written_over_an_output_is_not_taken_for_it():
    model = build("bert")
    sites, expected = sites_of(model), []
    for block in model.bert.encoder.layer:
        block.attention.output.dropout = Adding()
    handles = [
        model.get_submodule(site.out).register_forward_hook(
            lambda _m, _a, out: expected.append(out.clone())
        )
        for site in sites
    ]
    given = batches(model, 2)
    for inputs in given:
        run_plain(model, inputs)
    for handle in handles:
        handle.remove()
    run = Stages(model, sites, "output")
    with torch.no_grad(), evaluating(model):
        run.explore(given[0])
        for place, site in enumerate(sites):
            for number, inputs in enumerate(given):
                found = run.run_to(site, 1, number, inputs)[0]
                assert torch.equal(found, expected[number * len(sites) + place])


def test_a_block_that_cannot_go_on_by_itself_is_no_failure_of_the_model():
    model = build("bert")
    sites = sites_of(model)
    inputs = batches(model, 1)[0]
    recipes = {("bert.encoder.layer", 1): {0: 0, 1: None}, ("bert.encoder.layer", 2): {0: 7}}
    run = Stages(model, sites, "input", recipes=recipes)
    with torch.no_grad(), evaluating(model):
        run.run_to(sites[0], 1, 0, inputs)
        run.run_to(sites[1], 1, 0, inputs)
        with pytest.raises(UnsteadyError):
            run.run_to(sites[2], 1, 0, inputs)
        with pytest.raises(IndexError):  # a wrong batch is one
            Stages(model, sites, "input").run_to(
                sites[0], 1, 0, {"input_ids": torch.tensor([[9999]])}
            )


def test_a_call_follows_from_the_one_before_where_it_is_made_of_it():
    hidden, mask, bias, other = (torch.ones(1) for _ in range(4))
    answer = (hidden, bias)
    before = partial(print, other, mask=mask, bias=None, kind="full")
    after = partial(print, hidden, mask=mask, bias=bias, kind="full")
    recipe = stages._recipe(before, answer, after)
    assert recipe == {0: 0, "mask": None, "bias": 1, "kind": None}
    followed = stages._follow(recipe, before, answer, len)
    assert followed.func is len
    assert followed.args[0] is hidden
    assert followed.keywords == {"mask": mask, "bias": bias, "kind": "full"}
    cache = object()
    for given, then in [
        ({"mask": mask}, {"mask": other}),  # another mask than the block before had
        ({}, {"mask": mask}),
        ({"cache": cache}, {"cache": cache}),  # a cache remembers the first time
        ({"length": 7}, {"length": 7}),  # by chance, or of this batch only
    ]:
        last, next_one = partial(print, other, **given), partial(print, hidden, **then)
        assert stages._recipe(last, answer, next_one) is None
    # nothing of the answer goes on
    assert stages._recipe(before, answer, before) is None


def test_what_a_hook_does_to_a_block_is_done_once():
    """A kept output goes through the block's hooks again: they must not have been applied to it."""
    model = build("bert")
    for block in model.bert.encoder.layer:
        block.register_forward_hook(lambda _m, _a, out: out * 1.5)
    run, holds = explored(model)
    assert not run.recipes
    assert run.shortened
    assert holds
