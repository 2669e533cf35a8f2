"""After a cut, examples tell what the pruned model's own attention says."""

from __future__ import annotations

import pytest
import torch

import headcount as hc
from headcount.base.errors import UsageError
from headcount.behaviour.after import KEYS, first_keys, first_of_all, kept_in, pairs, short
from headcount.models.capture import collect
from headcount.tasks.loading import load_tokenizer
from models.zoo import build

TEXTS = [f"the {word} lawyer sees the judge ." for word in ("old", "young", "small", "big")]


def test_examples_after_a_cut_are_the_pruned_models_attention() -> None:
    model, tokenizer = hc.load("pocket"), load_tokenizer("pocket")
    mask = hc.select(model, "random", 0.5, seed=3)
    pruned = hc.remove(hc.load("pocket"), mask)
    found = hc.roles(model, TEXTS, tokenizer=tokenizer, examples=2, pruned=pruned)
    kept = {
        tuple(tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])): collect(
            pruned, dict(tokenizer(text, return_tensors="pt"))
        )
        for text in TEXTS
    }
    seen = 0
    for example in found.examples:
        head = list(found.layout)[example["head"]]
        if head not in mask.kept:
            assert example["after"] is None
            continue
        layers = kept[tuple(example["tokens"])]
        place = next(place for place in layers if place.layer == head.layer)
        own = mask.indices(head.stack, head.layer).index(head.index)
        attention = layers[place][0, own]
        assert example["after"]["weights"] == first_keys(attention, example["query"])
        assert example["after"]["most"] == first_of_all(attention)
        seen += 1
    assert seen == 2 * len(mask)
    alone = hc.roles(model, TEXTS, tokenizer=tokenizer, examples=2)
    assert [{**each, "after": 0} for each in alone.examples] == [
        {**each, "after": 0} for each in found.examples
    ]


def test_a_model_that_is_no_cut_of_the_other_is_refused() -> None:
    with pytest.raises(UsageError, match="only two checkpoints of one architecture"):
        hc.roles(build("bert"), [[1, 2, 3]], pruned=build("gpt2"))
    full = hc.load("pocket")
    mask = hc.select(full, "random", 0.5)
    assert kept_in(full, hc.remove(hc.load("pocket"), mask)) == mask


def test_what_a_query_looks_at_most_comes_first() -> None:
    attention = torch.tensor([[0.1, 0.2, 0.0, 0.3, 0.25, 0.15], [1.0, 0, 0, 0, 0, 0]])
    assert first_keys(attention, 0) == [[3, 0.3], [4, 0.25], [1, 0.2], [5, 0.15], [0, 0.1]]
    assert len(first_keys(attention, 1)) == KEYS
    assert first_of_all(attention) == [[3, 0.3], [0, 1.0]]
    assert pairs(torch.tensor([2]), torch.tensor([0.12345])) == [[2, short(0.1231)]]
