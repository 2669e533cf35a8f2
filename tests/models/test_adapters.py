from __future__ import annotations

from typing import Any

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.heads import Mask
from headcount.models.adapters import adaptable_layers, adapted, attention_layers
from headcount.models.find import layout
from headcount.models.probe import find_probe, run
from headcount.models.remove import remove
from models.zoo import build, mixed

FAMILIES = ["bert", "albert", "gpt2", "llama", "t5", "falcon"]


def pruned(family: str) -> Any:
    full = build(family)
    return remove(full, mixed(layout(full)))


def trained_weights(model: Any) -> dict[str, torch.nn.Parameter]:
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_adapters_learnt_is_in_the_weights_afterwards(family):
    small = pruned(family).double()
    before = {name: value.clone() for name, value in small.state_dict().items()}
    names, probe = adaptable_layers(small), find_probe(small)
    left, right = {}, {}
    generator = torch.Generator().manual_seed(0)
    with adapted(small, names, rank=3, seed=0):
        assert torch.equal(run(small, probe)[0], run(pruned(family).double(), probe)[0])
        trained = trained_weights(small)
        assert len(trained) == 2 * len(names)
        for name, value in trained.items():
            layer, _, matrix = name.removesuffix(".default.weight").rpartition(".")
            value.data = torch.randn(value.shape, generator=generator, dtype=value.dtype) * 0.1
            {"lora_A": left, "lora_B": right}[matrix][layer] = value.data
        inside = run(small, probe)[0]
    assert torch.allclose(run(small, probe)[0], inside, atol=1e-9)
    assert (inside - run(pruned(family).double(), probe)[0]).abs().max() > 1e-3
    assert list(small.state_dict()) == list(before)
    for name, value in small.state_dict().items():
        wanted, layer = before[name], name.removesuffix(".weight")
        if layer in names:
            product = 2 * right[layer] @ left[layer]
            wanted = wanted + (product.T if family == "gpt2" else product)
        assert torch.allclose(value, wanted, atol=1e-12), name


def test_after_an_error_the_model_is_as_it_was():
    small = pruned("bert")
    small.classifier.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in small.state_dict().items()}

    def fail():
        with adapted(small, adaptable_layers(small), rank=2, seed=0):
            for value in trained_weights(small).values():
                value.data += 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert all(torch.equal(value, before[name]) for name, value in small.state_dict().items())
    assert {*dict(small.named_parameters())} - {*trained_weights(small)} == {"classifier.weight"}


def test_a_seed_draws_the_adapters_and_nothing_else():
    small, drawn = pruned("bert"), []
    for seed in (0, 0, 1):
        state = torch.get_rng_state()
        with adapted(small, ["classifier"], rank=2, seed=seed):
            drawn.append(trained_weights(small)["classifier.lora_A.default.weight"].clone())
        assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_shared_weights_and_those_of_words_have_no_adapter():
    full: Any = build("bert")
    first, second = (layer.output for layer in full.bert.encoder.layer[:2])
    assert "bert.encoder.layer.0.output.dense" in adaptable_layers(full)
    second.dense.weight = first.dense.weight
    assert not [name for name in adaptable_layers(full) if name.endswith("r.0.output.dense")]
    assert "lm_head" not in adaptable_layers(build("llama"))


def test_attention_is_that_of_layers_with_heads():
    full = build("llama")
    some = remove(full, mixed(layout(full)))
    assert layout(some)["decoder"].heads[0] == 0
    assert len(attention_layers(some)) == 4 * 3
    assert attention_layers(some) <= {*adaptable_layers(some)}
    none = remove(full, Mask.none(layout(full)))
    assert not attention_layers(none)
    with pytest.raises(UsageError, match="no linear layer left that LoRA could adapt"):
        adapted(none, [], rank=2, seed=0).__enter__()
