"""The checkpoint for vLLM: numbers of every layer in the config, a head wherever there was none.

vLLM itself is run by `make servers`; here transformers loads what it would.
"""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

import headcount as hc
from exports.exporting import built
from exports.test_checkpoint import fresh
from headcount.base.errors import UnsupportedError
from headcount.exports.export import export
from headcount.models.probe import probe_inputs, run
from models.zoo import build
from tools import servers

KINDS = {"llama": (LlamaForCausalLM, LlamaConfig), "qwen2": (Qwen2ForCausalLM, Qwen2Config)}


def cut(family, mask):
    model = built(*KINDS[family])
    return hc.remove(model, hc.Mask.parse(mask, hc.layout(model)))


def settings(folder):
    return json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize("family", KINDS)
@pytest.mark.parametrize("mask", ["6420", "0642", "0000"])
def test_every_layer_has_a_head_and_the_answers_are_the_models(family, mask, tmp_path):
    small = cut(family, mask)
    made = export(small, "vllm", tmp_path / "served")
    assert made.difference == 0
    numbers = settings(tmp_path / "served")["per_layer_config"]
    for layer, count in enumerate(map(int, mask)):
        queries, groups = (count, count // 2) if count else (1, 1)
        whole = {"num_attention_heads": 6, "num_key_value_heads": 3}
        assert (whole | numbers.get(str(layer), {})) == {
            "num_attention_heads": queries, "num_key_value_heads": groups,
        }  # fmt: skip
    weights = load_file(tmp_path / "served" / "model.safetensors")
    for layer in (n for n, count in enumerate(mask) if count == "0"):
        for part, shape in {"q": (8, 96), "k": (8, 96), "v": (8, 96), "o": (96, 8)}.items():
            weight = weights[f"model.layers.{layer}.self_attn.{part}_proj.weight"]
            assert weight.shape == shape
            assert not weight.any()
    assert hc.layout(small)["decoder"].heads == tuple(map(int, mask))  # the model is as it was
    ids = torch.arange(3, 12)[None]
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "served", trust_remote_code=True)
    kept = {"max_new_tokens": 10, "do_sample": False, "pad_token_id": 0}
    assert torch.equal(plain.generate(ids, **kept), small.generate(ids, **kept))


def test_a_fresh_process_without_headcount(tmp_path):
    small = cut("llama", "6420")
    for to in ("vllm", "standalone"):
        folder = tmp_path / "exports" / to
        export(small, to, folder)
        inputs = probe_inputs(small, batch=2, length=9, seed=7)
        torch.save((inputs, run(small, inputs)), folder / "answers.pt")
        (folder / "auto.txt").write_text("AutoModelForCausalLM")
    for found in fresh(tmp_path / "exports").values():
        worst = max(found[name] for name in ("difference", "copied", "pickled", "saved again"))
        assert worst <= 1e-6


def test_the_report_says_what_is_divided(tmp_path):
    even = export(cut("llama", "4444"), "vllm", tmp_path / "even")
    assert (
        even.details
        == "tensor parallelism is over 2 processes at most, by the key-value heads of its layers"
    )
    uneven = export(cut("llama", "6420"), "vllm", tmp_path / "uneven")
    assert uneven.details == (
        "tensor parallelism is not possible, by the key-value heads of its layers; layers without "
        "heads have one of zeros: 1"
    )


def test_the_numbers_are_in_the_standalone_export_and_not_taken_from_it(tmp_path):
    """Read again, the layers are those of headcount's own list, and what is cut later says so."""
    small = cut("qwen2", "6420")
    export(small, "standalone", tmp_path / "alone")
    written = settings(tmp_path / "alone")
    empty = {"num_attention_heads": 0, "num_key_value_heads": 0}
    assert written["per_layer_config"]["3"] == empty
    assert written["allow_global_per_layer_attribute_access"] is True
    assert written["head_dim"] == 8
    again = hc.load(tmp_path / "alone")
    assert hc.layout(again) == hc.layout(small)
    layout = hc.layout(again)
    hc.remove(again, hc.Mask.parse("2220", layout)).save_pretrained(tmp_path / "smaller")
    assert "per_layer_config" not in settings(tmp_path / "smaller")
    export(hc.load(tmp_path / "smaller"), "vllm", tmp_path / "served")
    assert settings(tmp_path / "served")["per_layer_config"]["0"]["num_attention_heads"] == 2


@pytest.mark.parametrize("family", ["bert", "t5", "gpt2"])
def test_other_models_are_refused(family, tmp_path):
    model = build(family)
    small = hc.remove(model, hc.select(model, "random", 0.3))
    with pytest.raises(UnsupportedError, match="language models of one decoder whose config has"):
        export(small, "vllm", tmp_path / "served")
    export(small, "standalone", tmp_path / "alone")
    assert "per_layer_config" not in settings(tmp_path / "alone")


def test_servers_that_are_not_named_are_not_run(tmp_path, capsys, monkeypatch):
    model = tmp_path / "model"
    built(LlamaForCausalLM, LlamaConfig).save_pretrained(model)
    monkeypatch.setattr(servers, "open_tokenizer", lambda name: lambda text: {"input_ids": [3, 4]})
    monkeypatch.setattr("sys.argv", ["servers.py", str(model)])
    assert servers.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(line.endswith("DID NOT RUN, its server is not named") for line in lines)
    assert lines[0].startswith("free (6, 4, 2, 0")
    assert lines[2].startswith("uniform (4, 4, 4, 4")
