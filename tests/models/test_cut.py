from __future__ import annotations

import copy

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors import safe_open

from headcount.base.errors import NotFoundError
from headcount.heads import Head, Mask
from headcount.models import cut
from headcount.models.capture import collect
from headcount.models.find import layout, sites_of
from headcount.models.gates import gate
from headcount.models.load import load
from headcount.models.numbers import original_mask
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove
from models.zoo import build, removed, unchanged


@pytest.mark.parametrize("kind", ["q", "k", "kv", "qkv", "grouped"])
def test_rows_of_every_kind_by_a_loop(kind):
    heads, groups, width = 6, 3, 2
    size = heads // groups
    blocks = {
        "q": [("q", h) for h in range(heads)],
        "k": [("k", g) for g in range(groups)],
        "kv": [(c, g) for c in "kv" for g in range(groups)],
        "qkv": [("q", h) for h in range(heads)] + [(c, g) for c in "kv" for g in range(groups)],
        "grouped": [
            item
            for g in range(groups)
            for item in [("q", g * size + i) for i in range(size)] + [("k", g), ("v", g)]
        ],
    }[kind]
    for kept in ([0, 1, 4, 5], [1, 3], [0, 2, 4], []):
        wanted = {("q", h) for h in kept} | {(c, h // size) for h in kept for c in "kv"}
        expected = [
            i * width + j for i, block in enumerate(blocks) if block in wanted for j in range(width)
        ]
        assert cut.rows_of(kind, kept, heads, groups, width) == expected


@pytest.mark.parametrize("family", ["llama", "bert", "gpt2", "t5", "falcon"])
@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor.*deprecated:UserWarning")
def test_a_layer_without_heads_has_no_weights_of_size_0(family, tmp_path):
    _, _, small = removed(family, "mixed")
    assert any(site.heads == 0 for site in sites_of(small))
    assert all(parameter.numel() for parameter in small.parameters())
    small.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    assert all(0 not in shape for shape in shapes)
    again = load(tmp_path)
    assert layout(again) == layout(small)
    assert layout(copy.deepcopy(again)) == layout(small)
    inputs = probe_inputs(again, batch=2, length=9)
    linear = {torch.nn.Linear}
    quantised = torch.ao.quantization.quantize_dynamic(again, linear, dtype=torch.qint8)
    for answer, exact in zip(run(quantised, inputs), run(small, inputs), strict=True):
        assert (answer - exact).abs().max() <= 0.3 * exact.abs().max()


@pytest.mark.parametrize(
    ("family", "targets"), [("llama", ["q_proj", "v_proj", "o_proj"]), ("bert", ["query", "value"])]
)
def test_adapters_leave_a_layer_without_heads_alone(family, targets):
    _, _, small = removed(family, "mixed")
    inputs = probe_inputs(small, batch=2, length=9)
    expected = run(small, inputs)
    adapted = get_peft_model(copy.deepcopy(small), LoraConfig(target_modules=targets, r=2))
    layers = len(sites_of(small)) - sum(site.heads == 0 for site in sites_of(small))
    assert sum("lora_A" in name for name, _ in adapted.named_parameters()) == layers * len(targets)
    assert torch.equal(run(adapted.merge_and_unload(), inputs)[0], expected[0])


WAYS = {"olmo2": "values", "phi3": "all", "bitnet": "output"}
"""Norms over all queries; a forward pass that reads head counts from the config; a norm after."""


def mixed(full):
    """An emptied layer, an uneven one by whole groups, a whole one."""
    gone = [h for h in full if h.layer == 0] + [Head("decoder", 1, 2), Head("decoder", 1, 3)]
    return Mask.full(full).drop(gone)


@pytest.fixture(params=WAYS)
def family(request):
    return request.param


def narrowed(family):
    model = build(family)
    mask = mixed(layout(model))
    with unchanged(model):
        return model, mask, remove(model, mask)


def test_removed_is_masked_and_smaller(family):
    model, mask, small = narrowed(family)
    inputs = probe_inputs(model, length=9, seed=5)
    with gate(model, mask):
        expected = run(model, inputs)
    assert relative_difference(expected, run(small, inputs)) < 1e-5
    (entry,) = [site for site in small.config.headcount["sites"] if site["kept"]]
    assert entry["narrow"] == WAYS[family]
    out = small.get_submodule(entry["out"])
    assert isinstance(out, cut.Narrow)
    assert out.weight.shape == (32, 16)
    gone = {"olmo2": 16 + 16, "phi3": 16 + 32, "bitnet": 16}[family]
    before = sum(p.numel() for p in model.get_submodule(entry["path"]).parameters())
    after = sum(p.numel() for p in small.get_submodule(entry["path"]).parameters())
    # phi3's fused rows: 16 of queries, one group of keys, one of values
    assert before - after == gone * 32
    assert layout(small).stacks[0].heads == (0, 2, 4)


def test_saved_and_loaded(family, tmp_path):
    model, _, small = narrowed(family)
    small.save_pretrained(tmp_path)
    again = load(str(tmp_path))
    inputs = probe_inputs(model, length=9, seed=5)
    assert relative_difference(run(small, inputs), run(again, inputs)) == 0
    assert layout(again) == layout(small)
    assert original_mask(again, Mask.full(layout(again))).pattern == "024"


def test_cut_twice_is_cut_once(family):
    model, mask, small = narrowed(family)
    again = remove(
        small, Mask.full(layout(small)).drop([Head("decoder", 1, 0), Head("decoder", 1, 1)])
    )
    once = remove(model, mask.drop([Head("decoder", 1, 0), Head("decoder", 1, 1)]))
    inputs = probe_inputs(model, length=9, seed=5)
    assert relative_difference(run(once, inputs), run(again, inputs)) < 1e-5
    assert layout(again).stacks[0].heads == (0, 0, 4)


def test_gates_and_capture_see_the_heads_that_are_left(family):
    model, mask, small = narrowed(family)
    inputs = probe_inputs(model, length=9, seed=5)
    left = Mask.full(layout(small)).drop([Head("decoder", 1, 1)])
    with gate(small, left):
        masked = run(small, inputs)
    with gate(model, mask.drop([Head("decoder", 1, 1)])):
        assert relative_difference(run(model, inputs), masked) < 1e-5
    before, after = collect(model, inputs), collect(small, inputs)
    shapes = [attention.shape[1] for attention in after.values()]
    assert shapes == [0, 2, 4]
    with gate(model, mask):
        before = collect(model, inputs)
    assert torch.allclose(before["decoder", 1, 0][:, :2], after["decoder", 1, 0], atol=1e-5)


def test_generation(family):
    model, mask, small = narrowed(family)
    prompt = torch.tensor([[5, 6, 7, 8]])
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    with gate(model, mask):
        expected = model.generate(prompt, **settings)
    assert torch.equal(expected, small.generate(prompt, **settings))


@pytest.mark.parametrize("damage", ["", "most", 3])
def test_damaged_instructions_are_refused(damage, tmp_path):
    _, _, small = narrowed("phi3")
    config = copy.deepcopy(small.config)
    (entry,) = [site for site in config.headcount["sites"] if site["kept"]]
    entry["narrow"] = damage
    del config.headcount["check"]
    small.save_pretrained(tmp_path)
    config.save_pretrained(tmp_path)
    with pytest.raises(NotFoundError, match="is damaged"):
        load(str(tmp_path))


def test_latent_attention_loses_the_blocks_of_its_heads():
    model = build("deepseek-v3")
    mask = mixed(layout(model)).drop([Head("decoder", 1, 0)])
    small = remove(model, mask)
    inputs = probe_inputs(model, length=9, seed=5)
    with gate(model, mask):
        expected = run(model, inputs)
    assert relative_difference(expected, run(small, inputs)) < 1e-5
    attention = small.model.layers[1].self_attn
    assert attention.q_b_proj.out_features == 12
    assert attention.kv_b_proj.out_features == 16


@pytest.mark.parametrize("kind", ["q", "k", "v", "kv", "qkv", "grouped"])
def test_values_of_keeps_queries_and_keys(kind):
    """Against the meaning: a block is gone where it holds values of a group without heads."""
    heads, groups, width, kept = 6, 3, 2, [0, 1, 5]
    blocks = {
        "q": ["q"] * 6,
        "k": ["k"] * 3,
        "v": ["v0", "v1", "v2"],
        "kv": ["k"] * 3 + ["v0", "v1", "v2"],
        "qkv": ["q"] * 6 + ["k"] * 3 + ["v0", "v1", "v2"],
        "grouped": ["q", "q", "k", "v0", "q", "q", "k", "v1", "q", "q", "k", "v2"],
    }[kind]
    expected = [
        block * width + row
        for block, name in enumerate(blocks)
        if name != "v1"
        for row in range(width)
    ]
    assert cut.values_of(kind, kept, heads, groups, width) == expected
    assert set(cut.rows_of(kind, kept, heads, groups, width)) <= set(expected)
