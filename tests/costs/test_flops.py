from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from headcount.base.errors import UnsupportedError, UsageError
from headcount.costs.flops import count_flops, fitting_length, inputs_at
from headcount.models.load import skeleton
from headcount.models.sites import find_sites
from models.zoo import FAMILIES, build

LENGTH = 12


def bare(model: Any) -> Any:
    """`model` without weights, as `count_flops` wants it."""
    config = copy.deepcopy(model.config)
    config._attn_implementation = "eager"
    return skeleton(config, type(model)).requires_grad_(False)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_weights_it_counts_what_a_real_run_does(family: str) -> None:
    model = build(family, attention="eager").requires_grad_(False)
    found = count_flops(bare(model), length=LENGTH)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(**inputs_at(model, length=LENGTH))
    assert found.total == counter.get_total_flops() > 0
    root = f"{type(model).__name__}."
    for site in find_sites(model):
        assert found.runs[site.path] >= 1
        for path in (site.path, site.out):
            assert found.flops[path] == sum(counter.get_flop_counts()[root + path].values()) > 0


@pytest.mark.parametrize("family", ["bert", "t5", "bert-decoder-cross", "gpt2-cross", "bart"])
def test_the_inputs_have_one_length_and_no_padding(family: str) -> None:
    inputs = inputs_at(build(family), length=9, batch=3)
    assert all(tensor.shape[:2] == (3, 9) for tensor in inputs.values()), inputs
    assert inputs["attention_mask"].min() == 1


def test_twice_the_length_is_more_than_twice_the_work() -> None:
    model = bare(build("bert"))
    short, long = (count_flops(model, length=length).total for length in (8, 16))
    products = 4 * 4 * 32  # per layer 4 n n width, four layers
    assert long - 2 * short == products * (16**2 - 2 * 8**2) - 2 * 32 * 32 - 2 * 32 * 2


def test_experts_are_counted_once_for_each_token_that_uses_them() -> None:
    from transformers import MixtralConfig, MixtralModel

    config = MixtralConfig(
        vocab_size=50, hidden_size=32, intermediate_size=40, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=4, head_dim=8,
        num_local_experts=4, num_experts_per_tok=2,
    )  # fmt: skip
    config._attn_implementation, config._experts_implementation = "eager", "batched_mm"
    found = count_flops(skeleton(config, MixtralModel).requires_grad_(False), length=10)
    attention = 4 * 2 * 10 * 32 * 32 + 4 * 10 * 10 * 32
    assert found.total == attention + 2 * 10 * 32 * 4 + 2 * (3 * 2 * 10 * 32 * 40)


def test_the_default_length_fits() -> None:
    assert fitting_length(build("bert").config, None) == 64
    assert fitting_length(build("clip").config, None) == 16
    assert fitting_length(build("whisper").config, None) == 32
    assert fitting_length(build("t5").config, None) == 128
    assert fitting_length(build("t5").config, 4000) == 4000
    assert fitting_length(build("bert").config, 64) == 64


@pytest.mark.parametrize("length", [0, -1, 65])
def test_a_length_the_model_cannot_take_is_refused(length: int) -> None:
    with pytest.raises(UsageError, match=str(length)):
        fitting_length(build("bert").config, length)


def test_a_model_that_does_not_run_is_refused_with_the_reason() -> None:
    model = bare(build("bert"))

    def fail(*_: Any) -> None:
        raise RuntimeError("no way\nand more")

    model.bert.encoder.register_forward_pre_hook(fail)
    with pytest.raises(UnsupportedError, match=r"BertForSequenceClassification .*: no way$"):
        count_flops(model, length=LENGTH)
