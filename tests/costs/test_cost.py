from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    FNetConfig,
    LlamaConfig,
    LlamaForCausalLM,
    ReformerConfig,
    T5Config,
    T5ForConditionalGeneration,
)

import headcount as hc
from headcount.base.errors import NotFoundError, UnsupportedError, UsageError
from headcount.costs.cost import Cost, cost, cost_of, inspect
from headcount.heads import Head, Mask
from headcount.models.load import read_config
from models.zoo import FAMILIES, PATTERNS, build, removed

FIXTURES = Path(__file__).parent.parent / "fixtures"
LENGTH = 12


@pytest.fixture(scope="module")
def base() -> Cost:
    """BERT-base at 128 tokens."""
    return cost_of(BertConfig(), BertModel)


def test_bert_base_is_what_the_papers_say(base: Cost) -> None:
    module = base.sites[0]
    weights, biases = 4 * 768 * 768, 4 * 768
    assert module.parameters == weights + biases
    assert module.memory == 4 * (weights + biases)
    assert f"{weights * 4 / 1e6:.3f}" == "9.437"  # the paper's 9.43 MB
    n = base.length
    assert n == 128
    assert module.flops == 4 * 2 * n * 768 * 768 + 2 * 2 * n * n * 768
    assert base.parameters == 109_482_240
    assert base.memory == 4 * base.parameters


def test_the_ideals_of_bert_base(base: Cost) -> None:
    pooler = 2 * 768 * 768
    assert base.flops is not None
    assert base.attention_flops is not None
    share = base.attention_flops / (base.flops - pooler)
    assert round(share, 3) == 0.351
    assert [round(1 - ratio * share, 3) for ratio in (0.5, 0.75, 0.9)] == [0.824, 0.736, 0.684]
    assert round(1 / (1 - share), 2) == 1.54
    # the whole model, with its pooler
    assert base.share == pytest.approx(share, abs=1e-4)
    assert base.ceiling == pytest.approx(1.5416, abs=1e-4)
    for kept, ideal in [(12, 1), (6, 0.8243), (3, 0.7365), (0, 0.6487)]:
        mask = Mask.parse(f"12x{kept}", base.layout)
        assert base.ratio(mask) == pytest.approx(ideal, abs=1e-4)


def test_the_ideal_does_not_ask_which_head_of_a_layer_goes(base: Cost) -> None:
    first = Mask.full(base.layout).drop([Head("encoder", 0, 0)])
    other = Mask.full(base.layout).drop([Head("encoder", 7, 5)])
    assert base.flops_with(first) == base.flops_with(other)
    assert base.flops_with(first) == base.flops - base.sites[0].flops // 12  # pyright: ignore


def test_grouped_heads_by_hand() -> None:
    config = LlamaConfig(
        vocab_size=50, hidden_size=64, intermediate_size=96, num_hidden_layers=1,
        num_attention_heads=8, num_key_value_heads=2, head_dim=8,
    )  # fmt: skip
    found = cost_of(config, LlamaForCausalLM, length=10)
    (module,) = found.sites
    queries, keys, n = 64, 16, 10
    assert module.parameters == 2 * 64 * queries + 2 * 64 * keys
    assert module.group_flops == 2 * 2 * n * 64 * keys
    assert module.flops == module.group_flops + 2 * 2 * n * 64 * queries + 4 * n * n * queries
    assert found.flops == module.flops + 3 * 2 * n * 64 * 96 + 2 * n * 64 * 50
    # a whole group takes its keys and values along, half of each group does not
    group = Mask.of(found.layout, [("decoder", 0, i) for i in range(4)])
    halves = Mask.of(found.layout, [("decoder", 0, i) for i in (0, 1, 4, 5)])
    assert found.flops - found.flops_with(group) == module.flops // 2  # pyright: ignore
    assert found.flops - found.flops_with(halves) == (module.flops - module.group_flops) // 2  # pyright: ignore
    assert module.cache == 2 * keys * 4
    assert cost_of(config, LlamaForCausalLM, dtype=torch.bfloat16).sites[0].cache == 2 * keys * 2


def test_cross_attention_reads_the_source() -> None:
    config = T5Config(
        vocab_size=50, d_model=32, d_kv=8, d_ff=40, num_layers=1, num_heads=4,
        decoder_start_token_id=0,
    )  # fmt: skip
    found = cost_of(config, T5ForConditionalGeneration, length=10)
    assert [item.site.stack for item in found.sites] == ["encoder", "cross", "decoder"]
    assert [item.flops for item in found.sites] == [4 * 2 * 10 * 32 * 32 + 4 * 10 * 10 * 32] * 3
    assert [item.cache for item in found.sites] == [0, 2 * 32 * 4, 2 * 32 * 4]


@pytest.mark.parametrize("family", FAMILIES)
def test_predicted_is_what_removal_leaves(family: str) -> None:
    model, mask, small = removed(family, "mixed")
    before = cost(model, length=LENGTH)
    assert before.layout == hc.layout(model)
    assert before.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert before.heads_before == len(before.layout)
    after = cost(small, length=LENGTH)
    assert before.flops_with(mask) == after.flops
    assert after.parameters == sum(parameter.numel() for parameter in small.parameters())
    assert (len(after.layout), after.heads_before) == (len(mask), len(before.layout))
    assert after.attention_parameters < before.attention_parameters
    assert before.share is not None
    assert 0 < before.share < 1


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("family", ["albert", "falcon", "t5"])
def test_every_pattern_of_removal(family: str, pattern: str) -> None:
    model, mask, small = removed(family, pattern)
    before = cost(model, length=LENGTH)
    assert before.flops_with(mask) == cost(small, length=LENGTH).flops


def test_the_model_is_left_as_it_is() -> None:
    model = build("bert", attention="sdpa")
    cost(model, length=LENGTH)
    assert model.config._attn_implementation == "sdpa"
    assert next(model.parameters()).requires_grad
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_a_shared_layer_counts_all_its_runs() -> None:
    found = cost(build("albert", num_hidden_groups=1), length=LENGTH)
    (module,) = found.sites
    assert module.uses == found.layout["encoder"].uses[0] == 4
    assert module.flops == 4 * (4 * 2 * LENGTH * 32 * 32 + 4 * LENGTH * LENGTH * 32)
    assert module.parameters == 4 * (32 * 32 + 32)


def test_what_cannot_be_counted_is_not_known() -> None:
    from transformers import ReformerModel

    config = ReformerConfig(attn_layers=["local", "local"], num_hash_buckets=4, is_decoder=True)
    found = cost_of(config, ReformerModel)
    assert (found.flops, found.counted, found.share, found.ceiling) == (None, None, None, None)
    assert "ReformerModel cannot be counted" in found.uncounted
    assert found.flops_with(Mask.none(found.layout)) is None
    assert found.ratio(Mask.none(found.layout)) is None
    assert found.sites[0].parameters > 0
    assert found.sites[0].flops is None


def test_a_head_that_needs_numbers_is_left_out() -> None:
    from transformers import BartForSequenceClassification

    config = build("bart").config
    found = cost_of(config, BartForSequenceClassification, length=LENGTH)
    assert (found.model, found.counted) == ("BartForSequenceClassification", "BartModel")
    assert found.flops == cost(build("bart").model, length=LENGTH).flops
    assert all(item.flops for item in found.sites)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_config_of_transformers_4_with_heads_gone(family: str) -> None:
    folder = FIXTURES / f"v4-pruned-{family}"
    found = cost_of(*read_config(str(folder)), length=LENGTH)
    loaded = hc.load(folder)
    assert found.layout == hc.layout(loaded)
    assert found.parameters == sum(parameter.numel() for parameter in loaded.parameters())
    assert found.heads_before > len(found.layout)


def test_the_dtype_is_the_saved_one(tmp_path: Path) -> None:
    model = build("llama").to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    found = cost_of(*read_config(str(tmp_path)), length=LENGTH)
    assert found.dtype == cost(model, length=LENGTH).dtype == "bfloat16"
    assert found.memory == 2 * found.parameters


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    with pytest.raises(NotFoundError, match="no model"):
        read_config(str(tmp_path / "nowhere"))
    with pytest.raises(NotFoundError, match=r"no config\.json"):
        read_config(str(tmp_path))
    file.write_text('{"model_type": "bert", "num_hidden_layers": "x"}')
    with pytest.raises(UnsupportedError, match=r"describes no model: .*num_hidden_layers"):
        read_config(str(tmp_path))
    file.write_text('{"model_type": "bert", "hidden_size": 30, "num_attention_heads": 4}')
    with pytest.raises(UnsupportedError, match="describes no model: The hidden size"):
        cost_of(*read_config(str(tmp_path)))
    empty = {"hidden_size": 0, "num_attention_heads": 2, "head_dim": 4, "num_hidden_layers": 1}
    file.write_text(json.dumps({"model_type": "llama", **empty}))
    with pytest.raises(UsageError, match="has no parameters: is its config"):
        cost_of(*read_config(str(tmp_path)))
    FNetConfig().save_pretrained(tmp_path)
    with pytest.raises(UnsupportedError, match="finds no attention heads"):
        cost_of(*read_config(str(tmp_path)))


def test_a_model_is_inspected_in_memory_and_by_name(tmp_path: Path) -> None:
    model = build("llama")
    model.save_pretrained(tmp_path)
    here, there = inspect(model, length=20), inspect(tmp_path, length=20)
    assert (here.name, there.name) == (None, str(tmp_path))
    assert replace(here, name=there.name) == there
    assert here.to_json()["modules"] == [item.to_json() for item in cost(model, length=20).sites]
    assert repr(here).startswith("Cost(LlamaForCausalLM, ")
    assert len(repr(here)) <= 100


def test_a_notebook_shows_an_inspection() -> None:
    found = inspect(build("bert"))
    unsafe = replace(found, model="<script>")
    assert found._repr_html_().count("<tr>") == 1 + 4 + 2
    assert "<script>" not in unsafe._repr_html_()


def test_what_cannot_be_inspected_is_refused() -> None:
    with pytest.raises(UsageError, match=r"hc\.inspect takes a transformers model, not int"):
        inspect(5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="an image of 3 x 16 x 16, not tokens: leave out --length"):
        inspect(build("vit"), length=20)
