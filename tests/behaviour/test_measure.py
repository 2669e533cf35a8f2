"""Planted heads are recognised, and everything is as by hand on models of many families."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2Model

import headcount as hc
from behaviour.oracles import by_hand
from headcount.base.errors import UnsupportedError, UsageError
from headcount.behaviour.measure import repeated, role_inputs
from headcount.behaviour.words import ATTENTION
from headcount.models.capture import collect
from headcount.models.remove import remove
from headcount.tasks import open_task
from headcount.tasks.calibration import InputOptions
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.loading import load_tokenizer
from models.zoo import build

WIDTH, PLACES, END = 64, 24, 15
STRONG = 60.0


def rows_of(lengths, *, seed=0, most=61, labels=None):
    rng = np.random.default_rng(seed)
    ids = [rng.integers(5, most, length).tolist() for length in lengths]
    return EncodedRows({"input_ids": ids}, labels, {"input_ids": 0})


def planted() -> GPT2Model:
    """Two layers of heads that do one thing each: tokens and places are dimensions of their own.

    0: previous, same, first, separator, duplicate. 1: induction, by what layer 0's first head has
    copied from the token before; the others look at everything alike.
    """
    config = GPT2Config(
        vocab_size=16, n_positions=PLACES, n_embd=5 * WIDTH, n_layer=2, n_head=5,
        eos_token_id=END, bos_token_id=END,
    )  # fmt: skip
    model = GPT2Model(config).eval()
    token, place = slice(0, 16), slice(16, 16 + PLACES)

    def plant(layer, head, queries, keys, bias=None):
        """Queries and keys of a head: (from, to, factor) of dimensions."""
        weight = model.h[layer].attn.c_attn.weight
        for part, maps in ((0, queries), (1, keys)):
            start = part * 5 * WIDTH + head * WIDTH
            for origin, target, factor in maps:
                for a, b in zip(origin, target, strict=True):
                    weight[a, start + b] = factor
        for target in bias or ():
            model.h[layer].attn.c_attn.bias[head * WIDTH + target] = STRONG

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for norm in (
            module for module in model.modules() if isinstance(module, torch.nn.LayerNorm)
        ):
            norm.weight.fill_(1.0)
        model.wte.weight[:, token] = torch.eye(16)
        model.wpe.weight[:, place] = torch.eye(PLACES)
        tokens, places = range(16), range(16, 16 + PLACES)
        plant(0, 0, [(places[1:], places[:-1], STRONG)], [(places, places, 1.0)])
        plant(0, 1, [(places, places, STRONG)], [(places, places, 1.0)])
        plant(0, 2, [], [(places, places, 1.0)], bias=[16])
        plant(0, 3, [], [(tokens, tokens, 1.0)], bias=[END])
        both = [(tokens, tokens, STRONG), (places, places, -STRONG)]
        plant(0, 4, both, [(tokens, tokens, 1.0), (places, places, 1.0)])
        for number in range(16):  # layer 0's first head writes the token before
            model.h[0].attn.c_attn.weight[number, 2 * 5 * WIDTH + number] = 1.0
            model.h[0].attn.c_proj.weight[number, 64 + number] = 1.0
        plant(1, 0, [(tokens, tokens, STRONG)], [(range(64, 80), tokens, 1.0)])
    return model


@pytest.fixture(scope="module")
def said_twice() -> list[list[int]]:
    rng = np.random.default_rng(0)
    rows = []
    for length in rng.integers(4, 11, 40):
        text = rng.permutation(14)[:length].tolist()
        rows.append([*text, END, *text])
    return rows


def test_planted_heads_are_recognised(said_twice: list[list[int]]) -> None:
    found = hc.roles(planted(), said_twice, examples=0)
    assert found.roles[:6] == (
        "previous", "same", "first", "separator", "duplicate", "induction",
    )  # fmt: skip
    assert set(found.roles[6:]) == {None}
    assert np.isnan(found["next"].values).all(), "nothing is ahead in a causal model"
    for place, role in enumerate(found.roles[:6]):
        assert role is not None
        assert found[role].values[place] > 0.9
        others = np.delete(found[role].values, place)
        assert np.abs(others - found[role].chance[1:]).max() < 0.45, role
    np.testing.assert_allclose(found["entropy_share"].values[6:], 1, atol=1e-4)
    assert found.provenance["separators"] == {"decoder": "special"}


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "deberta-v2", "t5", "albert"])
def test_means_and_errors_are_those_by_hand(family: str) -> None:
    model = build(family)
    rows = rows_of([3, 17, 9, 9, 30, 5, 12], most=20)
    found = hc.roles(model, rows, examples=0)
    named = [
        getattr(model.config, f"{name}_token_id", None)
        for name in ("bos", "eos", "pad", "sep", "cls")
    ]
    special = {number for number in named if number is not None}
    stacks = {stack.name for stack in found.layout.stacks}
    by_stack = {stack: ([], []) for stack in stacks}
    for row in rows.columns["input_ids"]:
        inputs = {"input_ids": torch.tensor([row])}
        sides = {"encoder": row, "decoder": row}
        if model.config.is_encoder_decoder:
            labels = inputs["input_ids"]
            told = model.prepare_decoder_input_ids_from_labels(labels=labels)
            inputs["decoder_input_ids"] = told
            sides["decoder"] = told[0].tolist()
        kept = collect(model, inputs)
        for stack in stacks:
            own = sides["decoder" if stack != "encoder" else "encoder"]
            text = [token not in special for token in own]
            separators = [token in special and place > 0 for place, token in enumerate(own)]
            keys = None
            if stack == "cross":
                keys = row, [token in special for token in row]
            both = [[], []]
            layers = sorted({place.layer for place in kept if place.stack == stack})
            for layer in layers:
                uses = [
                    kept[p][0].double().numpy() for p in sorted(kept) if p[:2] == (stack, layer)
                ]
                for head in range(len(uses[0])):
                    each = [
                        by_hand(use[head], own, text, separators, _sees(stack), keys)
                        for use in uses
                    ]
                    for part in (0, 1):
                        both[part].append(np.mean([one[part] for one in each], axis=0))
            for part in (0, 1):
                by_stack[stack][part].append(both[part])
    for stack, (values, chances) in by_stack.items():
        own = [place for place, head in enumerate(found.layout) if head.stack == stack]
        table = np.array(values)  # (input, head, quantity)
        count = (~np.isnan(table)).sum(0)
        for at, name in enumerate(ATTENTION):
            there = count[:, at] > 0
            numbers = found[name].values[own]
            assert np.isnan(numbers[~there]).all(), (stack, name)
            if there.any():
                mean = np.nanmean(table[:, there, at], axis=0)
                np.testing.assert_allclose(numbers[there], mean, atol=2e-5, err_msg=name)
                chance = np.nanmean(np.array(chances)[:, there, at], axis=0)
                np.testing.assert_allclose(found[name].chance[own][there], chance, atol=1e-6)
            several = count[:, at] > 1
            if several.any():
                error = np.nanstd(table[:, several, at], axis=0, ddof=1) / np.sqrt(
                    count[several, at]
                )
                np.testing.assert_allclose(found[name].stderr[own][several], error, atol=2e-5)


def _sees(stack):
    return {"decoder": lambda i, j: j <= i}.get(stack, lambda i, j: True)


def test_a_pruned_model_keeps_its_numbers_and_an_empty_layer_is_none() -> None:
    model = build("bert")
    layout = hc.layout(model)
    heads = [head for head in layout if head.layer == 1 or head.index == 2]
    small = remove(model, hc.Mask.full(layout).drop(heads))
    found = hc.roles(small, rows_of([9, 8, 7]), examples=1)
    assert len(found.roles) == len(hc.layout(small)) == len(layout) - len(heads)
    assert not np.isnan(found["entropy"].values).any()


def test_without_data_rows_are_random_and_said_twice() -> None:
    from headcount.tasks.loading import load_tokenizer

    how = {"tokenizer": load_tokenizer("pocket"), "samples": 6, "max_length": 20, "examples": 0}
    found = hc.roles(hc.load("pocket"), **how)
    again = hc.roles(hc.load("pocket"), **how)
    assert found.inputs == "random tokens, each row twice"
    assert found.count == 6
    assert not np.isnan(found["induction"].values).any()
    np.testing.assert_array_equal(found["induction"].values, again["induction"].values)


def test_the_model_is_as_it_was() -> None:
    model = build("bert").train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    hc.roles(model, rows_of([5, 6]))
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_what_cannot_be_is_refused() -> None:
    model = build("bert")
    with pytest.raises(UsageError, match="rows of a task: pass one"):
        hc.roles(model, rows_of([5, 6]), alone=True)
    with pytest.raises(UsageError, match="no inputs"):
        hc.roles(model, iter([{"input_ids": torch.zeros(0, 3, dtype=torch.long)}]))
    with pytest.raises(UnsupportedError, match="Roles are about tokens"):
        hc.roles(model, [{"inputs_embeds": torch.zeros(1, 3, 8)}])
    vit = build("vit")
    vit.config.patch_size = 2  # 64 patches by its config, and it has fewer tokens
    with pytest.raises(UnsupportedError, match="what its heads attend to has no place"):
        hc.roles(vit, [{"pixel_values": torch.zeros(1, 3, 16, 16)}])
    model.config.bos_token_id = 7
    with pytest.raises(UsageError, match="No input has a token of text"):
        hc.roles(model, {"input_ids": [[7, 7]]})
    with torch.no_grad():
        list(model.parameters())[8].fill_(float("nan"))
    with pytest.raises(UsageError, match=r"head encoder\.0\.0 holds NaN"):
        hc.roles(model, rows_of([5, 6]))


def test_a_row_is_repeated_between_the_same_special_tokens() -> None:
    tokenizer = load_tokenizer("pocket")
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    rows = EncodedRows({"input_ids": [[cls, 11, 12, 13, 14, 15, sep], [cls, 11, sep], [cls, sep]]})
    assert repeated(rows, tokenizer).columns["input_ids"] == [
        [cls, 11, 12, 11, 12, sep],
        [cls, 11, 11, sep],
        [cls, sep],
    ]


def test_texts_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("the lawyer sees the judge .\n", encoding="utf-8")
    model, tokenizer = hc.load("pocket"), load_tokenizer("pocket")
    rows, name = role_inputs(model, tokenizer, InputOptions(rows=file))
    assert (len(rows), name) == (1, "texts.txt")
    assert rows.columns["input_ids"] == [tokenizer("the lawyer sees the judge .")["input_ids"]]
    task = open_task("pocket-sentiment")
    assert role_inputs(model, tokenizer, InputOptions(samples=2), task)[1] == "pocket-sentiment"
    rows, name = role_inputs(model, tokenizer, InputOptions(random=4, max_length=12))
    assert name == "random tokens, each row twice"
    assert max(rows.lengths) <= 12
