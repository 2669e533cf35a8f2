from __future__ import annotations

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import headcount as hc
from headcount.base.errors import UsageError
from headcount.costs.cost import cost
from headcount.studies.search import prices
from headcount.studies.search.bounds import CostBudget
from headcount.studies.search.prices import cache_prices, parameter_prices, prices_of, time_prices
from headcount.studies.search.ways import LayerChoice, all_ways, mask_of

LLAMA = {
    "vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6,
    "num_key_value_heads": 2, "intermediate_size": 32, "max_position_embeddings": 64,
}  # fmt: skip


@pytest.fixture
def llama():
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**LLAMA)).eval()


@pytest.fixture
def gpt2():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=50, n_embd=24, n_layer=2, n_head=4, n_positions=64)
    return GPT2LMHeadModel(config).eval()


def chosen(layout, number):
    """For each layer one of its ways: another one in each."""
    ways = all_ways(layout, {})
    return {place: each[(number + 2 * place[1]) % len(each)] for place, each in ways.items()}


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("name", ["model", "llama", "gpt2"])
def test_counted_parameters_and_bytes_are_those_of_the_removed_model(name, number, request):
    """Projections with and without biases, grouped and fused."""
    model = request.getfixturevalue(name)
    layout = hc.layout(model)
    taken = chosen(layout, number)
    small = hc.remove(model, mask_of(layout, taken))
    found = parameter_prices(model)
    assert found.whole == model.num_parameters()
    spent = found.fixed + sum(found.price(*item) for item in taken.items())
    assert spent == pytest.approx(small.num_parameters())
    if name != "model":
        found = cache_prices(model)
        assert found.whole == sum(site.cache for site in cost(model).sites)
        spent = found.fixed + sum(found.price(*item) for item in taken.items())
        assert spent == sum(site.cache for site in cost(small).sites)


def test_an_encoder_has_no_cache(model):
    with pytest.raises(UsageError, match=r"keeps no keys and values .* decoders"):
        cache_prices(model)


def test_time_is_shared_out_over_layers_and_lies_between_measured_points(model, monkeypatch):
    """A clock that takes 3 ms and 1 ms for every head."""

    class Seconds:
        def __init__(self, value):
            self.median = value

    class Row:
        def __init__(self, name, seconds):
            self.name, self.seconds, self.ratio = name, Seconds(seconds), Seconds(seconds / 0.015)

    asked = {}

    def fake(dense, removed, **how):
        asked.update(how)
        rows = [Row("dense", 0.015)]
        rows += [Row(f"removed {name}", 0.003 + 0.001 * len(mask))
                 for name, (mask, _) in removed.items()]  # fmt: skip
        return type("Found", (), {"rows": rows})

    monkeypatch.setattr(prices, "time_removed", fake)
    found = time_prices(model, batch=2, length=9, rounds=6, seed=0)
    assert (asked["batch"], asked["length"], asked["rounds"]) == (2, 9, 6)
    assert sorted(found.table["encoder 4/4"]) == [0, 1, 2, 3, 4]
    assert (found.whole, found.fixed) == (pytest.approx(0.015), pytest.approx(0.003))
    for kept in range(5):
        way = LayerChoice(heads=tuple(range(kept)), groups=kept, loss=0.0)
        assert found.price(("encoder", 1), way) == pytest.approx(0.001 * kept)


def test_noise_never_makes_more_heads_cheaper():
    counts, seconds = prices._rising({4: 0.0, 2: -0.3, 0: -0.2, 3: -0.4})
    assert counts == [0, 2, 3, 4]
    assert seconds == pytest.approx([-0.3, -0.3, -0.3, 0.0])
    assert prices._rising({1: 0.2, 2: 0.0})[1] == [0.0, 0.0]


def test_the_time_of_a_model_is_measured(model):
    budget = CostBudget("latency", 0.8, True)
    found = prices_of(budget, model, batch=1, length=4, rounds=6, seed=0)
    assert 0 < found.fixed <= found.whole
    assert set(found.table["encoder 4/4"]) == {0, 1, 2, 3, 4}
