"""What exports are verified on: every input the tokenizer gives, pairs, padding, several sizes."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoTokenizer

from headcount.exports.inputs import find_probes, find_tokenizer
from headcount.models.probe import run
from headcount.models.shipped import locate
from models.zoo import FAMILIES, build
from training.conftest import tiny


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(locate("pocket-bert"))


def test_pairs_with_padding_in_several_sizes(tokenizer):
    probes = find_probes(tiny(tokenizer), tokenizer)
    assert set(probes.tokenized) == {"input_ids", "token_type_ids", "attention_mask"}
    assert "text pairs" in probes.summary
    assert len({each["input_ids"].shape for each in probes.feeds}) >= 3
    traced = probes.feeds[0]
    assert set(traced) == set(probes.tokenized)
    assert set(traced["token_type_ids"].unique().tolist()) == {0, 1}
    assert set(traced["attention_mask"].unique().tolist()) == {0, 1}
    # words, not the sign for an unknown one
    assert (traced["input_ids"] == tokenizer.unk_token_id).float().mean() < 0.2
    assert any((each["token_type_ids"] == 0).all() for each in probes.feeds), "single texts too"


def test_rows_of_a_task_come_first_and_are_completed(tokenizer):
    rows = [{"input_ids": torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0]]), "labels": torch.ones(2)}]
    probes = find_probes(tiny(tokenizer), tokenizer, rows)
    assert torch.equal(probes.feeds[0]["input_ids"], rows[0]["input_ids"])
    assert set(probes.feeds[0]) == {"input_ids", "token_type_ids", "attention_mask"}
    assert probes.summary == "text pairs, tokenised and padded and 2 rows of the task"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_without_a_tokenizer(family):
    model = build(family)
    probes = find_probes(model)
    assert probes.tokenized == ()
    for feeds in probes.feeds:
        assert run(model, feeds)
    names = set(probes.feeds[0])
    tells_segments_apart = getattr(model.config, "type_vocab_size", 0) > 1
    assert ("token_type_ids" in names) == tells_segments_apart
    if tells_segments_apart:
        assert all(set(f["token_type_ids"].unique().tolist()) == {0, 1} for f in probes.feeds)


def test_a_tokenizer_with_other_words_is_left_aside(tokenizer):
    model = tiny(tokenizer, vocab_size=12)
    probes = find_probes(model, tokenizer)
    assert probes.summary == "made-up tokens with padding"
    assert "token_type_ids" in probes.feeds[0]


def test_what_only_the_tokenizer_knows_is_dropped(tokenizer):
    model = build("distilbert", vocab_size=len(tokenizer))
    probes = find_probes(model, tokenizer)
    assert set(probes.feeds[0]) == {"input_ids", "attention_mask"}
    assert probes.more


def test_no_tokenizer_is_no_error(tmp_path):
    assert find_tokenizer("") is None
    assert find_tokenizer(tmp_path) is None
    (tmp_path / "tokenizer.json").write_text("{")
    assert find_tokenizer(tmp_path) is None


def test_a_tokenizer_that_panics_is_no_error(tokenizer, tmp_path):
    """In Rust, which is no Exception."""
    tokenizer.save_pretrained(tmp_path)
    words = json.loads((tmp_path / "tokenizer.json").read_text())
    panics = [{"SpecialToken": {"id": "[NONE]", "type_id": 0}}]
    words["post_processor"] |= {"single": panics, "pair": panics}
    (tmp_path / "tokenizer.json").write_text(json.dumps(words))
    probes = find_probes(tiny(tokenizer), find_tokenizer(tmp_path))
    assert probes.summary == "made-up tokens with padding"
