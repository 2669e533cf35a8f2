from __future__ import annotations

import json
import os

import pytest
import torch
from safetensors.torch import load_file
from transformers import ResNetConfig, ResNetModel

from headcount.heads import Layout, Mask
from headcount.models.find import layout
from headcount.models.load import load
from models.zoo import build


@pytest.fixture
def saved(tmp_path):
    def save(family="bert"):
        build(family).save_pretrained(tmp_path / family)
        return tmp_path / family

    return save


def test_removes_verifies_and_saves(cli, saved, tmp_path):
    ran = cli("remove", saved(), "--keep", "4302", "--out", tmp_path / "small")
    assert ran.code == 0, ran.err
    assert "16 -> 9" in ran.out
    assert layout(load(tmp_path / "small"))["encoder"].heads == (4, 3, 0, 2)


def test_a_mask_in_a_file(cli, saved, tmp_path):
    mask = Mask.none(Layout.of(encoder=[4] * 4)).keep([("encoder", 1, 2), ("encoder", 3, 0)])
    (tmp_path / "mask.json").write_text(json.dumps(mask.to_json()))
    ran = cli(
        "remove", saved(), "--keep", tmp_path / "mask.json", "--out", tmp_path / "s", "--json"
    )
    assert ran.code == 0, ran.err
    assert Mask.from_json(json.loads(ran.out)["mask"]) == mask


def refused(ran, code, *words):
    """One sentence on stderr, nothing on stdout, the right exit code."""
    assert ran.code == code, ran.err
    assert ran.out == ""
    lines = [line for line in ran.err.splitlines() if line.strip()]
    assert len(lines) == 1, ran.err
    for word in words:
        assert word in lines[0]


def test_bad_masks(cli, saved, tmp_path):
    out = ("--out", tmp_path / "small")
    bert, llama = saved("bert"), saved("llama")
    refused(cli("remove", bert, "--keep", "4445", *out), 2, "keeps 5 heads", "which has 4")
    refused(cli("remove", bert, "--keep", "444", *out), 2, "counts 3 layers")
    refused(cli("remove", bert, "--keep", "many", *out), 2, "not heads per layer")
    refused(cli("remove", llama, "--keep", "4344", *out), 2, "key-value groups")
    refused(cli("remove", bert, "--keep", "no.json", *out), 4, "Cannot read the mask no.json")
    other = Mask.full(Layout.of(encoder=[4, 4]))
    (tmp_path / "other.json").write_text(json.dumps(other.to_json()))
    refused(cli("remove", bert, "--keep", tmp_path / "other.json", *out), 2, "another layout")
    (tmp_path / "range.json").write_text(
        json.dumps(Mask.full(layout(load(bert))).to_json()).replace("[0, 1, 2, 3]", "[0, 9]")
    )
    refused(cli("remove", bert, "--keep", tmp_path / "range.json", *out), 2, "encoder.0.9")
    assert not (tmp_path / "small").exists()


def test_bad_models(cli, saved, tmp_path):
    keep = ("--keep", "2222", "--out", tmp_path / "small")
    refused(cli("remove", tmp_path / "nowhere", *keep), 4, "There is no model")
    config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], layer_type="basic")
    ResNetModel(config).save_pretrained(tmp_path / "resnet")
    refused(cli("remove", tmp_path / "resnet", *keep), 5, "no attention heads in ResNetModel")
    bert = saved()
    whole = (bert / "model.safetensors").read_bytes()
    (bert / "model.safetensors").write_bytes(whole[:-64])
    refused(cli("remove", bert, *keep), 4, "cannot be read")
    (bert / "model.safetensors").write_bytes(whole)
    torch.save(load_file(bert / "model.safetensors"), bert / "pytorch_model.bin")
    (bert / "model.safetensors").unlink()
    refused(cli("remove", bert, *keep), 2, "pickled", "--allow-pickle")
    assert not (tmp_path / "small").exists()


def test_weights_that_are_not_numbers(cli, tmp_path):
    model = build("bert")
    with torch.no_grad():
        model.bert.encoder.layer[0].attention.self.key.bias[0] = float("inf")
    model.save_pretrained(tmp_path / "bad")
    ran = cli("remove", tmp_path / "bad", "--keep", "2222", "--out", tmp_path / "small")
    refused(ran, 2, "bert.encoder.layer.0.attention.self.key.bias", "not all numbers")
    assert not (tmp_path / "small").exists()


def test_an_unwritable_folder(cli, saved, tmp_path):
    bert = saved()
    (tmp_path / "file").write_text("in the way")
    ran = cli("remove", bert, "--keep", "2222", "--out", tmp_path / "file" / "small")
    refused(ran, 1, "Cannot write")
    refused(
        cli("remove", bert, "--keep", "2222", "--out", bert),
        2,
        "is what is read: --out takes another place",
    )
    assert sorted(os.listdir(tmp_path)) == ["bert", "file"]


def test_an_architecture_that_cannot_be_cut(cli, tmp_path):
    from transformers import LongformerConfig, LongformerModel

    config = LongformerConfig(
        vocab_size=61,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=40,
        attention_window=4,
        pad_token_id=1,
    )
    LongformerModel(config).save_pretrained(tmp_path / "long")
    ran = cli("remove", tmp_path / "long", "--keep", "22", "--out", tmp_path / "small")
    refused(ran, 5, "does not reach encoder.layer.0.attention.self.key_global")
