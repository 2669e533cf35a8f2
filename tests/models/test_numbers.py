"""Heads of a pruned model keep the numbers they had in the model that was cut first."""

from __future__ import annotations

import json
import re

import pytest
import torch
from transformers import AutoTokenizer

from headcount.base.errors import UsageError
from headcount.changes.sentence import attention
from headcount.costs.cost import inspect
from headcount.heads import Head, Layout, Mask, Scores
from headcount.likeness.measure import redundancy
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.numbers import original_mask, read_mask
from headcount.models.remove import remove
from headcount.models.shipped import locate
from headcount.runs.folder import write_folder
from headcount.sensitivity.gradients import importance
from headcount.views.tables.redundancy import redundancy_json
from models.zoo import build, masks, mixed
from runs.test_folder import RECORD
from training.conftest import tiny

LEFT = {"encoder.0.1", "encoder.0.3", "encoder.1.0", "encoder.1.1", "encoder.1.2", "encoder.1.3"}


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """A BERT of two layers, without heads 0 and 2 of layer 0, in a folder with its tokenizer."""
    folder = tmp_path_factory.mktemp("numbers") / "cut"
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    model = tiny(tokenizer, num_hidden_layers=2)
    mask = Mask.full(layout(model)).drop([("encoder", 0, 0), ("encoder", 0, 2)])
    remove(model, mask).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_layout_knows_the_numbers(cut):
    found = layout(load(cut))
    assert found["encoder"].numbers == ((1, 3), (0, 1, 2, 3))
    assert {str(found.original(head)) for head in found} == LEFT
    again = Layout.from_json(json.loads(json.dumps(found.to_json())))
    assert again == found == Layout.of(encoder=[2, 4])
    assert again.original(Head("encoder", 0, 1)) == Head("encoder", 0, 3)
    assert repr(Scores(again, (0.0, 9.0, 1, 1, 1, 1))).endswith("highest encoder.0.3 9)")
    whole = layout(build("bert"))
    assert whole["encoder"].numbers == ()
    assert "numbers" not in whole.to_json()["encoder"]


def test_inspect_draws_where_heads_were(cut, cli):
    found = inspect(cut)
    assert found.left is not None
    assert {str(head) for head in found.left} == LEFT
    assert inspect("pocket").left is None
    lines = cli("inspect", cut).out.splitlines()
    assert lines[-4] == "Heads that are left"
    assert lines[-3:] == ["   0  · # · #", "   1  # # # #", "      · is removed"]
    assert "Heads that are left" not in cli("inspect", "pocket").out


def test_importance_tells_the_numbers(cut, cli):
    model = load(cut)
    batch = {"input_ids": torch.tensor([[1, 5, 6, 2]] * 2), "labels": torch.tensor([0, 1])}
    found = importance(model, [batch])
    assert found.to_json()["layout"]["encoder"]["numbers"] == [[1, 3], [0, 1, 2, 3]]
    ran = cli("importance", cut, "--task", "pocket-sentiment", "--calibration-samples", 4)
    assert ran.code == 0, ran.err
    title, first = (
        next(line for line in ran.out.splitlines() if word in line)
        for word in ("error ≤", "encoder 0")
    )
    columns = {found.start(): found[0] for found in re.finditer(r"\b\d\b", title)}
    starts = [found.start() for found in re.finditer(r"\d\.\d+", first)]
    assert [columns.get(start) for start in starts] == ["1", "3", None], ran.out


def test_redundancy_tells_the_numbers(cut):
    rows = [{"input_ids": torch.tensor([[1, 5 + i, 6, 7, 2]])} for i in range(3)]
    found = redundancy(load(cut), rows, "js")
    told = redundancy_json(found)
    named = {name for each in told["summary"][0]["nearest"] for name in each["heads"]}
    assert named <= LEFT
    assert {str(head) for head in found.heads("encoder")} == LEFT


def test_attention_tells_the_numbers(cut):
    found = attention(load(cut), "the cat")
    assert {f"{r['stack']}.{r['layer']}.{r['head']}" for r in found.rows()} == LEFT
    assert [r["head"] for r in found.only(layers=[0], heads=[3]).rows()] == [3]


def test_a_second_cut_is_written_in_the_first_ones_numbers(cut, tmp_path):
    once = load(cut)
    mask = Mask.full(layout(once)).drop([("encoder", 0, 0), ("encoder", 1, 3)])
    twice = remove(once, mask)
    write_folder(tmp_path / "out", RECORD, twice, mask)
    written = Mask.from_json(json.loads((tmp_path / "out" / "mask.json").read_text()))
    assert written.layout == Layout.of(encoder=[4, 4])
    assert {str(head) for head in written} == LEFT - {"encoder.0.1", "encoder.1.3"}
    # the same cut in one step from the whole model
    whole = tiny(AutoTokenizer.from_pretrained(cut), num_hidden_layers=2)
    straight = remove(whole, written)
    ids = torch.tensor([[1, 5, 6, 2]])
    assert torch.allclose(straight(ids).logits, twice(ids).logits, atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "t5", "llama", "gpt2-cross"])
def test_one_cut_is_its_mask(family):
    model = build(family)
    for mask in (mixed(layout(model)), masks(layout(model))["all emptied"]):
        assert original_mask(remove(model, mask), mask) == mask


def test_a_mask_in_the_first_ones_numbers_is_taken_for_a_pruned_model(cut):
    model = load(cut)
    own = layout(model)
    first = Layout.of(encoder=[4, 4])
    written = Mask.of(first, [("encoder", 0, 3), ("encoder", 1, 0), ("encoder", 1, 2)])
    found = read_mask(json.dumps(written.to_json()), model, own)
    assert found == Mask.of(own, [("encoder", 0, 1), ("encoder", 1, 0), ("encoder", 1, 2)])
    assert {str(own.original(head)) for head in found} == {str(head) for head in written}
    for mask in (found, Mask.full(own)):  # in the model's own numbers, as before
        assert read_mask(json.dumps(mask.to_json()), model, own) == mask
    assert read_mask("13", model, own).pattern == "13"
    everything = json.dumps(Mask.full(first).to_json())
    with pytest.raises(UsageError, match=r"keeps encoder\.0\.0, encoder\.0\.2, which were removed"):
        read_mask(everything, model, own)
    other = json.dumps(Mask.full(Layout.of(encoder=[5, 4])).to_json())
    with pytest.raises(UsageError, match="is for another layout"):
        read_mask(other, model, own)


@pytest.mark.parametrize("command", [["remove"], ["prune", "--method", "pattern"]])
def test_a_file_in_the_first_ones_numbers_cuts_again(cli, cut, tmp_path, command):
    written = Mask.of(Layout.of(encoder=[4, 4]), [("encoder", 0, 3), ("encoder", 1, 2)])
    (tmp_path / "mask.json").write_text(json.dumps(written.to_json()))
    line = (command[0], cut, *command[1:], "--mask", tmp_path / "mask.json")
    ran = cli(*line, "--out", tmp_path / "new")
    assert ran.code == 0, ran.err
    again = layout(load(tmp_path / "new"))
    assert {str(again.original(head)) for head in again} == {"encoder.0.3", "encoder.1.2"}
