from __future__ import annotations

import json

import pytest
import torch

import headcount as hc
from behaviour.test_measure import planted, rows_of
from headcount.base.errors import UsageError
from headcount.behaviour.examples import (
    KEYS,
    LONGEST,
    ROWS,
    Pool,
    digits,
    first_keys,
    pairs,
    spread,
)
from headcount.behaviour.tokens import marks_of
from headcount.changes.pair import mask_of_pair
from headcount.models.capture import collect
from headcount.tasks.loading import load_tokenizer
from models.zoo import build


def test_examples_are_what_the_attention_says() -> None:
    model, tokenizer = hc.load("pocket"), load_tokenizer("pocket")
    texts = [f"the {word} lawyer sees the judge ." for word in ("old", "young", "small", "big")]
    found = hc.roles(model, texts, tokenizer=tokenizer, examples=2)
    assert len(found.examples) == 2 * len(found.layout)
    kept = {text: collect(model, dict(tokenizer(text, return_tensors="pt"))) for text in texts}
    by_tokens = {
        tuple(tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])): kept[text]
        for text in texts
    }
    for example in found.examples:
        head = list(found.layout)[example["head"]]
        layers = by_tokens[tuple(example["tokens"])]
        place = next(place for place in layers if place.layer == head.layer)
        attention = layers[place][0, head.index]
        row = attention[example["query"]]
        for key, weight in example["weights"]:
            assert abs(float(row[key]) - weight) < 1e-3
        weights = [weight for _, weight in example["weights"]]
        assert weights == sorted(weights, reverse=True)
        assert [key for key, _ in example["most"]] == attention.argmax(1).tolist()
    first, second = found.examples[:2]
    assert (first["decile"], second["decile"]) == (1, 10)
    assert first["strength"] <= second["strength"]
    json.dumps(found.examples)


def test_the_query_that_is_shown_does_what_the_head_does() -> None:
    rows = [[1, 2, 3, 1, 4, 15, 2], [5, 6, 7, 5, 8, 15, 6]] * 3
    found = hc.roles(planted(), rows, examples=1)
    for example in found.examples[:2]:
        role = found.roles[example["head"]]
        shift = {"previous": 1, "same": 0}[role or ""]
        assert example["weights"][0][0] == example["query"] - shift
        assert example["decile"] == 10


def test_cross_attention_names_both_texts() -> None:
    found = hc.roles(build("t5"), rows_of([6, 9, 7]), examples=1)
    stacks = {list(found.layout)[example["head"]].stack: example for example in found.examples}
    assert set(stacks) == {"encoder", "cross", "decoder"}
    assert "keys" in stacks["cross"]
    assert "keys" not in stacks["encoder"]
    assert len(stacks["cross"]["most"]) == len(stacks["cross"]["tokens"])


def test_the_pool_keeps_the_shortest_and_cuts_what_is_long() -> None:
    model = build("bert")
    marks, pool = marks_of(model, None), Pool()
    for length in (60, 45, 7, *range(8, 8 + ROWS)):
        mask = torch.tensor([[1] * length + [0] * 3])
        batch = {"input_ids": torch.arange(5, length + 8)[None] % 50 + 5, "attention_mask": mask}
        pool.add(batch, marks.sides(model, batch))
    lengths = [length for length, _, _ in pool.rows]
    assert lengths == sorted(lengths)
    assert (len(lengths), lengths[0]) == (ROWS, 7)
    assert 60 not in lengths
    cut = next(batch for length, _, batch in pool.rows if length == 45)
    ids = cut["input_ids"][0]
    assert len(ids) == cut["attention_mask"].shape[1] == LONGEST
    assert int(ids[-1]) == (5 + 44) % 50 + 5


def test_deciles_go_from_the_weakest_to_the_strongest() -> None:
    rows = [{"strength": number / 20} for number in range(20)]
    assert [each["decile"] for each in spread(rows, 3)] == [1, 6, 10]
    assert spread(rows, 1) == [{"decile": 10, "strength": 0.95}]
    assert spread([], 3) == []
    assert [each["decile"] for each in spread(rows[:1], 3)] == [10]


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
            assert example["after"] == {"removed": True}
            continue
        layers = kept[tuple(example["tokens"])]
        place = next(place for place in layers if place.layer == head.layer)
        own = mask.indices(head.stack, head.layer).index(head.index)
        attention = layers[place][0, own]
        assert example["after"] == first_keys(attention, example["query"])
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
    assert mask_of_pair(full, hc.remove(hc.load("pocket"), mask)) == mask


def test_what_a_query_looks_at_most_comes_first() -> None:
    attention = torch.tensor([[0.1, 0.2, 0.0, 0.3, 0.25, 0.15], [1.0, 0, 0, 0, 0, 0]])
    first, second = first_keys(attention, 0), first_keys(attention, 1)
    assert first["weights"] == [[3, 0.3], [4, 0.25], [1, 0.2], [5, 0.15], [0, 0.1]]
    assert len(second["weights"]) == KEYS
    assert first["most"] == second["most"] == [[3, 0.3], [0, 1.0]]
    assert pairs(torch.tensor([2]), torch.tensor([0.12345])) == [[2, digits(0.1231)]]
