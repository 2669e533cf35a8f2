from __future__ import annotations

import itertools
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from transformers import LlamaConfig, LlamaForCausalLM

import headcount as hc
from headcount.base.errors import UsageError
from headcount.costs.cost import cost
from headcount.costs.timed import BenchResult, BenchRow, Shape
from headcount.costs.timing import Estimate
from headcount.pruning.second_order import collect
from headcount.pruning.surgeon import paths
from headcount.studies.search import answers, budgets
from headcount.studies.search import prices as prices_module
from headcount.studies.search.bounds import CostBudget
from headcount.studies.search.budgets import Amount, Attempt, attempted
from headcount.studies.search.prices import cache_prices, parameter_prices
from headcount.studies.search.ways import all_ways
from headcount.tasks import Examples, Task
from headcount.training.scoring import Scoring
from models.zoo import build
from pruning.conftest import cheapest, data
from studies.search.test_prices import LLAMA
from training.conftest import WORDS

FAST = hc.SearchOptions(bench=False, seeds=1, repeats=6, batch=1, length=4)
HOW = {"scoring": Scoring(bootstrap=20), "calibration": hc.Calibration(samples=16), "baseline": 1}


def quiet(model: Any, *, uniform: bool = False) -> Any:
    """What a budget needs of a search that asks for nothing else."""
    subject = SimpleNamespace(model=model, layout=hc.layout(model))
    like = SimpleNamespace(uniform=uniform)
    return SimpleNamespace(subject=subject, like=like, report=lambda text: None)


@pytest.mark.parametrize("share", [0.75, 0.85, 0.95])
def test_the_best_within_a_budget_is_that_of_all_combinations(model, share):
    """Brute force over every number of heads in every layer."""
    layout = hc.layout(model)
    rng = np.random.default_rng(3)
    paths = {("encoder", layer): (rng.permutation(4).tolist(), rng.random(4)) for layer in range(3)}
    ways, prices = all_ways(layout, paths), parameter_prices(model)
    budget = CostBudget("parameters", share, True)
    (found,) = attempted(quiet(model), budget, prices, ways)
    limit = budget.limit(model.num_parameters())
    losses = {}
    for combination in itertools.product(*ways.values()):
        taken = dict(zip(ways, combination, strict=True))
        size = prices.fixed + sum(prices.price(*item) for item in taken.items())
        if size <= limit:
            losses[sum(way.loss for way in combination)] = combination
    best = losses[min(losses)]
    assert found.mask.counts()["encoder"] == tuple(len(way.heads) for way in best)
    assert found.amount.value <= limit
    assert found.amount.value == pytest.approx(found.predicted)
    assert hc.remove(model, found.mask).num_parameters() == found.amount.value


def test_what_is_measured_over_the_budget_is_tried_again_with_less_room(model, monkeypatch):
    layout = hc.layout(model)
    paths = {("encoder", layer): ([0, 1, 2, 3], np.ones(4)) for layer in range(3)}
    sizes: list[int] = []

    def slow(asked, budget, mask, predicted):
        sizes.append(len(mask))
        value = 1.04 * predicted  # always a little more than was predicted
        amount = Amount(value=value, low=0.99 * value, high=1.01 * value)
        return Attempt(mask=mask, predicted=predicted, amount=amount,
                       before=float(model.num_parameters()), timing=None, speedup=None)  # fmt: skip

    monkeypatch.setattr(budgets, "_attempt", slow)
    budget = CostBudget("parameters", 0.9, True)
    found = attempted(quiet(model), budget, parameter_prices(model), all_ways(layout, paths))
    assert found[-1].fits(budget)
    assert not any(each.fits(budget) for each in found[:-1])
    assert 1 < len(found) <= budgets.TRIES
    assert sizes == sorted(sizes, reverse=True)


def test_an_attempt_fits_by_its_value_and_may_fit_by_its_interval(model):
    amount = Amount(value=0.81, low=0.79, high=0.83)
    own = Attempt(mask=hc.Mask.full(hc.layout(model)), predicted=0.8, amount=amount, before=1.0,
                  timing=None, speedup=None)  # fmt: skip
    limits = [CostBudget("latency", share, True) for share in (0.78, 0.8, 0.82)]
    fits = [(own.fits(budget), own.may_fit(budget)) for budget in limits]
    assert fits == [(False, False), (False, True), (True, True)]


def test_a_search_within_parameters(model, task, tokenizer, tmp_path):
    limit = 0.9 * model.num_parameters()
    found = hc.search(model, task, max_parameters="0.9x", tokenizer=tokenizer, search_options=FAST,
                      out=tmp_path, **HOW)  # fmt: skip
    data = found.to_json()
    assert data["within_bound"]
    assert data["parameters"]["after"] <= limit
    assert data["parameters"]["after"] == found.model.num_parameters() == data["amount"]["value"]
    assert data["kept"] == len(found.mask) == sum(map(int, data["pattern"]))
    assert "heads on pets within 0.9 × the parameters" in data["sentence"]
    assert (data["method"], data["probability"], data["by"]) == ("surgeon", None, "budget")
    assert data["rows"]["calibration"]["split"] == "train"
    (tried,) = data["tried"]
    assert (tmp_path / "runs" / tried["id"] / "record.json").is_file()
    assert json.loads((tmp_path / "search.json").read_text()) == data
    record = hc.load_record(tmp_path / "model")
    assert record["heads"]["kept"] == data["pattern"]


def test_a_search_within_time_is_held_to_what_is_measured(model, task, tokenizer, monkeypatch):
    """A made-up clock on which each of the twelve heads takes a 24th of the whole time."""

    def fake(dense, removed, **how):
        rows = [clocked("dense", 1.0)]
        rows += [clocked(f"removed {name}", 0.5 + len(mask) / 24)
                 for name, (mask, _) in removed.items()]  # fmt: skip
        shape = Shape(batch=how["batch"], length=how["length"], reads="4 tokens", rounds=6,
                      share=0.5, ceiling=2.0, rows=tuple(rows))  # fmt: skip
        return BenchResult(model="Bert", device="cpu", threads=1, shapes=(shape,))

    def clocked(name: str, share: float) -> Any:
        ratio = Estimate(share, share - 0.01, share + 0.01)
        return BenchRow(name=name, kind="", heads=0, sparsity=0, seconds=ratio.times(0.01),
                   ratio=ratio,
                   ideal=share, parameters=0, memory=0)  # fmt: skip

    monkeypatch.setattr(prices_module, "time_removed", fake)
    monkeypatch.setattr(answers, "time_removed", fake)
    found = hc.search(
        model, task, max_latency="0.8x", tokenizer=tokenizer, search_options=FAST, **HOW
    )
    data = found.to_json()
    assert (data["kept"], data["within_bound"]) == (7, True)
    assert data["speedup"]["value"] == pytest.approx(1 / (0.5 + 7 / 24))
    assert data["speedup"]["low"] < data["speedup"]["value"] < data["speedup"]["high"]
    assert data["amount"]["value"] <= data["amount"]["limit"] == pytest.approx(0.008)
    assert "1.26 × as fast [1.25, 1.28] at 1 × 4 tokens (FLOPs allow 1.26 ×)" in data["sentence"]
    assert "within 0.8 × the latency" in data["sentence"]
    assert set(data["table"]) == {"encoder 4/4"}


def test_a_budget_that_no_cut_meets_says_how_close_it_came(model, task, tokenizer, tmp_path):
    found = hc.search(model, task, max_parameters="1k", tokenizer=tokenizer, search_options=FAST,
                      out=tmp_path, **HOW)  # fmt: skip
    assert not found.met
    assert found.data["within_bound"] is False
    assert "is within 1,000 of parameters: without any head it takes 0." in found.sentence
    assert not (tmp_path / "model").exists()
    assert (tmp_path / "search.json").is_file()


def text_task() -> Task:
    def load(split: str) -> Examples:
        rng = np.random.default_rng({"train": 1, "dev": 2}[split])
        return Examples(([" ".join(rng.choice(WORDS, 8)) for _ in range(140)],))

    return Task(name="words", kind="causal-lm", texts=("text",), metrics=("perplexity",),
                loader=load)  # fmt: skip


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_of_whole_groups_those_stay_whose_loss_is_least(share):
    """Brute force over all sets of groups, each layer's loss by a direct solution of the rest."""
    model = build("llama")  # two groups a layer: there the path passes every set worth keeping
    rows, subject = data(model), quiet(model)
    ways = all_ways(subject.subject.layout, paths(model, rows, groups=True), whole_groups=True)
    (found,) = attempted(subject, CostBudget("cache", share, True), cache_prices(model), ways)
    lost: list[dict[tuple[int, ...], float]] = []
    for sums in collect(model, rows).values():
        a, g, w = sums.normal()
        a = a + 1e-3 * np.trace(a) / len(a) * np.eye(len(a))
        size, heads = len(w) // sums.groups, sums.heads // sums.groups
        scale = sums.tokens * sums.coherence
        sets = [(), (0,), (1,), (0, 1)]
        gone = [[i for i in range(len(w)) if i // size not in kept] for kept in sets]
        lost.append(
            {
                tuple(h for h in range(sums.heads) if h // heads in kept): scale
                * cheapest(a, g, w, rest)
                for kept, rest in zip(sets, gone, strict=True)
            }
        )
    heads = sum(len(max(each, key=len)) for each in lost)
    fitting = [kept for kept in itertools.product(*lost) if sum(map(len, kept)) <= share * heads]
    best = min(fitting, key=lambda kept: sum(o[k] for o, k in zip(lost, kept, strict=True)))
    assert tuple(found.mask.indices("decoder", layer) for layer in range(len(lost))) == best


def test_a_cache_goes_with_whole_groups(tokenizer):
    model = LlamaForCausalLM(LlamaConfig(**{**LLAMA, "vocab_size": len(tokenizer)})).eval()
    found = hc.search(
        model, text_task(), max_cache="0.5x", tokenizer=tokenizer, search_options=FAST, **HOW
    )
    before, after = (sum(site.cache for site in cost(each).sites) for each in (model, found.model))
    assert after <= 0.5 * before
    assert found.data["cache"] == {"before": before, "after": after}
    assert "bytes of cache a token" in found.sentence
    for layer in range(2):
        kept = found.mask.indices("decoder", layer)
        assert kept in ((), (0, 1, 2), (3, 4, 5), (0, 1, 2, 3, 4, 5))
    assert found.data["higher_is_better"] is False


def test_a_cache_is_also_said_for_users_at_a_context(tokenizer):
    model = LlamaForCausalLM(LlamaConfig(**{**LLAMA, "vocab_size": len(tokenizer)})).eval()
    how = {"max_cache": "0.5x", "tokenizer": tokenizer, **HOW}
    options = replace(FAST, context=32, batch=4)
    found = hc.search(model, text_task(), search_options=options, **how)
    cache = found.data["cache"]
    assert (cache["context"], cache["batch"]) == (32, 4)
    for when in ("before", "after"):
        assert cache["bytes"][when] == 4 * 32 * cache[when]
        assert cache["users_per_gib"][when] == pytest.approx(2**30 / (32 * cache[when]))
    assert cache["share"]["before"] > cache["share"]["after"]
    sizes = [f"{cache['bytes'][when] / 2**20:,.1f}" for when in ("before", "after")]
    assert f", at 4 × 32 tokens {sizes[0]} → {sizes[1]} MiB of cache, " in found.sentence
    assert f"{cache['users_per_gib']['after']:,.1f} users per GiB" in found.sentence
    with pytest.raises(UsageError, match="takes 64 tokens, not 65"):
        hc.search(model, text_task(), search_options=replace(FAST, context=65), **how)
    with pytest.raises(UsageError, match="goes with --max-cache"):
        hc.search(model, text_task(), max_drop="1%", search_options=options, tokenizer=tokenizer)
    with pytest.raises(UsageError, match="at least 1 token, not 0"):
        hc.SearchOptions(context=0)


def test_an_encoder_has_no_cache_to_save(model, task, tokenizer):
    with pytest.raises(UsageError, match="--max-cache is for decoders"):
        hc.search(model, task, max_cache="0.5x", tokenizer=tokenizer, search_options=FAST, **HOW)


def test_of_perplexity_a_rise_is_bound(tokenizer):
    model = LlamaForCausalLM(LlamaConfig(**{**LLAMA, "vocab_size": len(tokenizer)})).eval()
    found = hc.search(model, text_task(), max_drop="5%", tokenizer=tokenizer, search_options=FAST,
                      **HOW)  # fmt: skip
    data = found.to_json()
    assert data["kept"] in range(12)
    assert data["within_bound"] == (data["score"] <= 1.05 * data["full"])
    assert "the rise is within 5 %" in data["sentence"]
    assert data["least"] == pytest.approx(1.05 * data["selection"]["score"])


def test_without_a_bound_it_is_the_knee(model, task, tokenizer):
    found = hc.search(model, task, tokenizer=tokenizer, search_options=FAST, **HOW)
    data = found.to_json()
    assert (data["by"], data["bound"], data["probability"], data["within_bound"]) == (
        "knee",
        None,
        None,
        None,
    )
    assert "no bound was given: this is the knee of its curve" in data["sentence"]
    assert data["kept"] in {one["kept"] for one in data["tried"]}
    assert {one["rows"] for one in data["tried"]} == {data["rows"]["selection"]["n"]}


def test_of_attempts_on_a_busy_machine_the_shares_count(model):
    """The second took longer because everything did."""
    full = hc.Mask.full(hc.layout(model))
    own = [
        Attempt(mask=full, predicted=0.8, before=before, timing=None, speedup=None,
                amount=Amount(value=value, low=0.79 * before, high=value))
        for before, value in ((1.0, 0.82), (2.0, 1.61))
    ]  # fmt: skip
    assert min(own, key=lambda each: each.share) is own[1]
    assert all(each.may_fit(CostBudget("latency", 0.8, True)) for each in own)


@pytest.mark.parametrize(("share", "kept"), [(0.45, 0), (0.5, 3), (0.75, 3), (1.0, 6)])
def test_uniform_layers_within_a_cache(share, kept):
    """The most key-value heads in every layer that fit; below one in each, nothing does."""
    model = LlamaForCausalLM(LlamaConfig(**LLAMA)).eval()
    layout = hc.layout(model)
    rng = np.random.default_rng(3)
    paths = {("decoder", layer): (rng.permutation(6).tolist(), rng.random(6)) for layer in range(2)}
    budget, prices = CostBudget("cache", share, True), prices_module.cache_prices(model)
    found = attempted(quiet(model, uniform=True), budget, prices, all_ways(layout, paths))
    counts = [attempt.mask.counts()["decoder"] for attempt in found]
    assert counts == ([(kept, kept)] if kept else [])


def test_uniform_layers_of_one_group_save_no_cache():
    model = LlamaForCausalLM(LlamaConfig(**LLAMA | {"num_key_value_heads": 1})).eval()
    subject, none = quiet(model, uniform=True), ([0], np.ones(1))
    paths = {("decoder", layer): none for layer in range(2)}
    ways = all_ways(subject.subject.layout, paths, whole_groups=True)
    prices = prices_module.cache_prices(model)
    assert attempted(subject, CostBudget("cache", 0.5, True), prices, ways) == []
    (all_heads,) = attempted(subject, CostBudget("cache", 1.0, True), prices, ways)
    assert len(all_heads.mask) == 12
