from __future__ import annotations

import copy

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors import safe_open

from headcount.models import cut
from headcount.models.find import layout, sites_of
from headcount.models.load import load
from headcount.models.probe import probe_inputs, run
from models.zoo import removed


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


@pytest.mark.parametrize("family", ["llama", "bert", "gpt2", "t5"])
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
