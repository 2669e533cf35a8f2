"""Linear paths beside heads: what they add, and that they last."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from headcount.base.errors import NotFoundError
from headcount.heads import Mask
from headcount.models.cut import WrittenPath, hidden_states
from headcount.models.find import layout, sites_of
from headcount.models.instructions import set_paths
from headcount.models.linear import read_path, write_path
from headcount.models.load import load
from headcount.models.probe import probe_inputs, run
from headcount.models.remove import remove
from models.zoo import build, mixed

FAMILIES = ["bert", "llama", "gpt2", "t5", "bart", "vit", "deberta-v2", "distilbert", "albert"]


def with_paths(model, rank=3, mask=None):
    """A pruned model whose every layer has a path of random weights."""
    small = remove(model, mask or mixed(layout(model)))
    width = 32
    paths = [
        WrittenPath(path=path, out=out, width=width, rank=rank)
        for site in sites_of(small)
        for path, out in site.places
    ]
    set_paths(small, paths)
    torch.manual_seed(0)
    with torch.no_grad():
        for entry in paths:
            path = small.get_submodule(entry["path"]).linear_path
            for parameter in path.parameters():
                parameter.normal_(std=0.3)
    return small


def by_hand(small, batch):
    """The model's answer where hooks of this test add the same, without the model's own."""
    plain = remove(small, Mask.full(layout(small)))
    matrices = {
        site.path: read_path(plain.get_submodule(site.path).linear_path).float()
        for site in sites_of(plain)
    }
    set_paths(plain, [])
    empty = {entry["path"] for entry in plain.config.headcount["sites"] if entry["empty"]}
    given, handles = {}, []
    for site in sites_of(plain):

        def see(module, args, kwargs, path=site.path):
            given[path] = hidden_states(kwargs, args)

        def add(module, args, output, path=site.path):
            if isinstance(output, tuple):
                return (output[0] + given[path] @ matrices[path], *output[1:])
            return output + given[path] @ matrices[path]

        attention, out = plain.get_submodule(site.path), plain.get_submodule(site.out)
        handles.append(attention.register_forward_pre_hook(see, with_kwargs=True))
        # a layer without heads skips a projection of its own
        skipped = site.path in empty and site.out.startswith(site.path + ".")
        handles.append((attention if skipped else out).register_forward_hook(add))
    answers = run(plain, batch)
    assert not any("linear_path" in name for name, _ in plain.named_parameters())
    return answers


@pytest.mark.parametrize("rank", [3, 32])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_path_adds_a_linear_map_of_the_layer_s_input(family, rank):
    model = build(family)
    small = with_paths(model, rank)
    batch = probe_inputs(model, batch=2, length=9)
    answers, expected = run(small, batch), by_hand(small, batch)
    assert torch.allclose(answers[0], expected[0], atol=1e-5)
    bare = run(remove(model, mixed(layout(model))), batch)
    assert not torch.allclose(answers[0], bare[0], atol=1e-2)


@pytest.mark.parametrize("family", FAMILIES)
def test_paths_are_saved_loaded_copied_and_pickled(family, tmp_path):
    model = build(family)
    small = with_paths(model)
    batch = probe_inputs(model, batch=2, length=9)
    answers = run(small, batch)
    small.save_pretrained(tmp_path / "small")
    for again in (
        load(tmp_path / "small"),
        copy.deepcopy(small),
        pickle.loads(pickle.dumps(small)),
    ):
        assert torch.equal(run(again, batch)[0], answers[0])
        assert again.config.headcount["linear"] == small.config.headcount["linear"]
        # and the copy's are its own
        again.get_submodule(sites_of(again)[-1].path).linear_path.up.data += 1
        assert not torch.equal(run(again, batch)[0], answers[0])
    assert torch.equal(run(small, batch)[0], answers[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_paths_stay_when_more_heads_are_removed(family, tmp_path):
    model = build(family)
    small = with_paths(model)
    left = layout(small)
    # the last layer with heads loses them all, which `remove` verifies against the masked model
    last = list(left)[-1]
    gone = [h for h in left if (h.stack, h.layer) == (last.stack, last.layer)]
    smaller = remove(small, Mask.full(left).drop(gone))
    assert len(smaller.config.headcount["linear"]) == len(small.config.headcount["linear"])
    batch = probe_inputs(model, batch=2, length=9)
    assert torch.allclose(run(smaller, batch)[0], by_hand(smaller, batch)[0], atol=1e-5)
    assert not torch.allclose(run(smaller, batch)[0], run(small, batch)[0], atol=1e-4)
    smaller.save_pretrained(tmp_path / "smaller")
    again = run(load(tmp_path / "smaller"), batch)
    assert torch.equal(run(smaller, batch)[0], again[0])


@pytest.mark.parametrize("family", ["llama", "gpt2", "t5", "bart"])
def test_a_model_with_paths_generates_with_its_cache(family):
    small = with_paths(build(family))
    tokens = torch.randint(3, 60, (2, 5), generator=torch.Generator().manual_seed(1))
    options = {"max_new_tokens": 6, "do_sample": False, "min_new_tokens": 6}
    with_cache = small.generate(tokens, use_cache=True, **options)
    assert torch.equal(with_cache, small.generate(tokens, use_cache=False, **options))


def test_a_layer_of_one_matrix_needs_no_cache_and_no_heads():
    model = build("llama")
    small = with_paths(model, 32, Mask.parse("4404", layout(model)))
    path = small.model.layers[2].self_attn.linear_path
    assert path.down is None
    assert path.up.shape == (32, 32)
    assert not small.model.layers[2].self_attn.kept_heads


def test_a_path_takes_any_matrix_of_its_rank():
    path = with_paths(build("bert")).bert.encoder.layer[1].attention.self.linear_path
    matrix = torch.randn(32, 3, dtype=torch.float64) @ torch.randn(3, 32, dtype=torch.float64)
    with torch.no_grad():
        write_path(path, matrix)
    assert torch.allclose(read_path(path), matrix, atol=1e-4)


def test_gradients_reach_a_path():
    small = with_paths(build("bert")).train()
    batch = probe_inputs(small, batch=2, length=9)
    small(**batch)[0].square().sum().backward()
    path = small.bert.encoder.layer[0].attention.self.linear_path
    assert path.down.grad.abs().max() > 0
    assert path.up.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rank": 0}, "its linear paths are"),
        ({"rank": 33}, "its linear paths are"),
        ({"width": "32"}, "its linear paths are"),
        ({"path": "bert.encoder.layer.9.attention.self"}, "is no attention layer"),
        ({"out": "classifier"}, "is no attention layer"),
    ],
)
def test_damaged_paths_are_refused(change, says, tmp_path):
    small = with_paths(build("bert"))
    entry = {**small.config.headcount["linear"][1], **change}
    told = {k: v for k, v in small.config.headcount.items() if k != "check"}
    small.save_pretrained(tmp_path / "small")
    config = small.config
    config.headcount = told | {"linear": [entry]}
    config.save_pretrained(tmp_path / "small")
    with pytest.raises(NotFoundError, match=says):
        load(tmp_path / "small")


def test_a_damaged_check_of_paths_is_refused(tmp_path):
    small = with_paths(build("bert"))
    small.save_pretrained(tmp_path / "small")
    changed = [{**entry, "rank": 4} for entry in small.config.headcount["linear"]]
    small.config.headcount = small.config.headcount | {"linear": changed}
    small.config.save_pretrained(tmp_path / "small")
    with pytest.raises(NotFoundError, match="check number does not fit"):
        load(tmp_path / "small")
