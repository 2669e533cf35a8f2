from __future__ import annotations

import pytest
import torch

from headcount.heads import Mask
from headcount.models.capture import collect
from headcount.models.find import layout, layout_of
from headcount.models.gates import gate, open_gates
from headcount.models.load import load
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove
from headcount.models.sites import find_sites
from models.zoo import build, skeleton


@pytest.fixture
def zamba():
    return build("zamba")


def test_layers_of_the_same_weights_are_one_layer_used_twice(zamba):
    found = layout(zamba)
    assert found["decoder"].heads == (4,)
    assert found["decoder"].uses == (2,)
    (site,) = find_sites(zamba)
    paths = [path for path, _ in site.places]
    assert paths == [f"model.layers.{layer}.shared_transf.self_attn" for layer in (2, 4)]


def test_a_gate_acts_wherever_its_weights_run(zamba):
    inputs = probe_inputs(zamba)
    seen = {}

    def note(path):
        return lambda _, args: seen.update({path: args[0].unflatten(-1, (4, -1))})

    (site,) = find_sites(zamba)
    closed = open_gates(layout(zamba), trainable=False)
    closed["decoder"][0][1] = 0.0
    with gate(zamba, closed):
        handles = [
            zamba.get_submodule(out).register_forward_pre_hook(note(path))
            for path, out in site.places
        ]
        masked = run(zamba, inputs)
        for handle in handles:
            handle.remove()
    assert len(seen) == 2
    for by_head in seen.values():
        assert by_head[..., 1, :].abs().sum() == 0
        assert by_head[..., 0, :].abs().sum() > 0
    assert relative_difference(run(zamba, inputs), masked) > 1e-3


def test_every_use_of_tied_layers_is_captured(zamba):
    inputs = probe_inputs(zamba)
    assert sorted(collect(zamba, inputs)) == [("decoder", 0, 0), ("decoder", 0, 1)]


@pytest.mark.parametrize(
    ("kind", "towers"),
    [
        ("paligemma", {"vision_tower": "encoder", "language_model": "decoder"}),
        ("mllama", {"vision_model": "encoder", "language_model": "decoder"}),
        ("llava", {"vision_tower": "encoder", "language_model": "decoder"}),
        ("gemma", {"layers": "decoder"}),
        ("bert", {"encoder": "encoder"}),
    ],
)
def test_a_tower_is_what_its_own_config_says(kind, towers):
    sites = [site for site in find_sites(skeleton(kind)) if site.stack != "cross"]
    assert {site.path.partition(".")[0]: site.stack for site in sites} == towers


def test_a_model_of_its_own_that_looks_both_ways_is_an_encoder():
    from transformers import Gemma3TextConfig, Gemma3TextModel

    config = Gemma3TextConfig(num_hidden_layers=1, use_bidirectional_attention=True)
    with torch.device("meta"):
        sites = find_sites(Gemma3TextModel(config))
    assert [stack.name for stack in layout_of(sites).stacks] == ["encoder"]


@pytest.mark.parametrize("dropped", [[1], [0, 1, 2, 3]])
def test_heads_of_tied_layers_are_removed_everywhere_and_stay_tied(zamba, dropped, tmp_path):
    mask = Mask.full(layout(zamba)).drop(("decoder", 0, head) for head in dropped)
    small = remove(zamba, mask)
    small.save_pretrained(tmp_path)
    inputs = probe_inputs(zamba, seed=9)
    with gate(zamba, mask):
        expected = run(zamba, inputs)
    for model in (small, load(tmp_path)):
        assert relative_difference(expected, run(model, inputs)) <= 1e-5
        assert layout(model)["decoder"].heads == (4 - len(dropped),)
        assert layout(model)["decoder"].uses == (2,)
