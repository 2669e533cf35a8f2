from __future__ import annotations

import json

import torch

import headcount as hc
from behaviour.test_measure import planted, rows_of
from headcount.behaviour.examples import LONGEST, ROWS, Pool, _chosen
from headcount.behaviour.tokens import marks_of
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
    assert [each["decile"] for each in _chosen(rows, 3)] == [1, 6, 10]
    assert _chosen(rows, 1) == [{"decile": 10, "strength": 0.95}]
    assert _chosen([], 3) == []
    assert [each["decile"] for each in _chosen(rows[:1], 3)] == [10]
