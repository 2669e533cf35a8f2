"""Small models of Llama's block, run in llama.cpp."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from gguf import GGUFReader, dequantize
from tokenizers import pre_tokenizers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from exports.exporting import built, byte_level
from headcount.base import extras
from headcount.base.errors import MissingExtraError, UnsupportedError, UsageError
from headcount.exports import gguf as export_gguf
from headcount.exports.export import export
from headcount.heads import Mask
from headcount.models.cut import paths_in
from headcount.models.find import layout
from headcount.models.instructions import set_paths
from headcount.models.probe import probe_inputs
from headcount.models.remove import remove
from headcount.repair.recover import Recover
from headcount.repair.recovery import recover

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


def cut(model, *kept):
    """The model with these heads of each layer."""
    mask = Mask.full(layout(model))
    gone = [
        ("decoder", layer, head)
        for layer, heads in enumerate(kept)
        for head in set(range(6)) - set(heads)
    ]
    return remove(model, mask.drop(gone))


UNEVEN = (range(6), (2, 3, 4, 5), (0, 2, 4), ())
"""Everything, two groups, one head a group, nothing."""


@pytest.mark.parametrize(
    ("kind", "config", "changes", "kept"),
    [
        (LlamaForCausalLM, LlamaConfig, {}, UNEVEN),
        (LlamaForCausalLM, LlamaConfig, {"rope_parameters": LLAMA3}, ((), (0, 1), (), range(6))),
        (LlamaForCausalLM, LlamaConfig, {"attention_bias": True, "mlp_bias": True}, UNEVEN),
        (LlamaForCausalLM, LlamaConfig, {"tie_word_embeddings": True}, [(0, 1)] * 4),
        (MistralForCausalLM, MistralConfig, {"sliding_window": None}, UNEVEN),
        (Qwen2ForCausalLM, Qwen2Config, {}, UNEVEN),
    ],
)
def test_llama_cpp_gives_the_models_own_tokens(kind, config, changes, kept, tmp_path, capfd):
    small = cut(built(kind, config, **changes), *kept)
    done = export(small, "gguf", tmp_path / "out", tokenizer=byte_level("smollm"), weights="f32")
    assert capfd.readouterr() == ("", "")
    assert done.difference is not None
    assert done.difference < 1e-5
    assert done.details.endswith("greedy tokens in llama.cpp: 15 of 15 with f32 weights")
    assert "15 of 15 with f32" in (tmp_path / "out" / "README.md").read_text()
    fields = GGUFReader(done.folder / "model.gguf").fields
    uneven = len({len(heads) for heads in kept}) > 1
    assert fields["general.architecture"].contents() == ("deci" if uneven else "llama")


@pytest.mark.parametrize("options", [Recover(linear=True), Recover(path_rank=3)])
def test_a_linear_map_in_place_of_attention_is_a_layer_of_llama_cpp(options, tmp_path):
    model = built(LlamaForCausalLM, LlamaConfig)
    small = cut(model, (), range(6), (0, 2, 4), ())
    rows = [probe_inputs(model, batch=4, length=10, seed=seed) for seed in range(3)]
    if options.path_rank:  # beside heads there is none in a file
        recover(small, model, rows, options=options)
        with pytest.raises(UnsupportedError, match=r"layers\.1\.self_attn got a linear path"):
            export(small, "gguf", tmp_path / "out", tokenizer=byte_level("smollm"))
        kept = [entry for entry in paths_in(small.config) if entry["path"][13] in "03"]
        set_paths(small, kept)
    recover(small, model, rows, options=replace(options, path_rank=0))
    assert small.model.layers[0].self_attn.linear_path.up.abs().max() > 1e-3
    done = export(small, "gguf", tmp_path / "out", tokenizer=byte_level("smollm"), weights="f32")
    assert done.details.endswith("15 of 15 with f32 weights")
    heads = GGUFReader(done.folder / "model.gguf").fields["deci.attention.head_count_kv"].contents()
    assert heads == [0, 3, 3, 0]
    recover(small, model, rows, options=Recover(bias=True))
    with pytest.raises(UnsupportedError, match=r"layers\.0\.self_attn got a linear path"):
        export(small, "gguf", tmp_path / "again", tokenizer=byte_level("smollm"))


def test_weights_of_bfloat16_are_compared_without_its_rounding(tmp_path):
    small = cut(built(LlamaForCausalLM, LlamaConfig), *UNEVEN).bfloat16()
    done = export(small, "gguf", tmp_path / "out", tokenizer=byte_level("smollm"), weights="f32")
    assert done.difference is not None
    assert done.difference < 1e-5
    assert small.dtype == torch.bfloat16


def test_a_wrong_order_of_rows_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(export_gguf, "_paired", lambda rows, heads: rows)
    small = cut(built(LlamaForCausalLM, LlamaConfig), *UNEVEN)
    with pytest.raises(UnsupportedError, match=r"log-probabilities differ from the model's by"):
        export(small, "gguf", tmp_path / "out", tokenizer=byte_level("smollm"))
    assert not (tmp_path / "out").exists()


def test_weights_are_stored_as_asked(tmp_path):
    small = cut(built(LlamaForCausalLM, LlamaConfig, initializer_range=0.1), *UNEVEN)
    sizes = {}
    for weights in ("f32", "f16", "q8_0"):
        done = export(
            small, "gguf", tmp_path / weights, tokenizer=byte_level("gpt-2"), weights=weights
        )
        tensors = {t.name: t for t in GGUFReader(done.folder / "model.gguf").tensors}
        stored = tensors["blk.1.ffn_down.weight"]
        numbers = dequantize(stored.data, stored.tensor_type)
        expected = small.model.layers[1].mlp.down_proj.weight.detach().numpy()
        assert np.abs(numbers - expected).max() <= np.abs(expected).max() / 127
        assert np.array_equal(numbers, expected) == (weights == "f32")
        assert f"with {weights} weights" in done.details
        assert "blk.3.attn_norm.weight" not in tensors
        # heads of 3 x 8 numbers do not fill blocks of 32
        assert tensors["blk.2.attn_output.weight"].tensor_type.name == (
            "F32" if weights == "f32" else "F16"
        )
        sizes[weights] = done.bytes
    assert sizes["f32"] > sizes["f16"] > sizes["q8_0"]


def test_without_llama_cpp_it_is_written_and_said(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(export_gguf, "find_spec", lambda name: None)
    model = built(LlamaForCausalLM, LlamaConfig, num_hidden_layers=1)
    done = export(model, "gguf", tmp_path / "out", tokenizer=byte_level("smollm"))
    assert done.difference is None
    assert "the file was not run" in done.details
    assert "the file was not run" in caplog.text
    assert "the file was not run" in (done.folder / "README.md").read_text()
    assert "not run" in repr(done)


def test_what_it_cannot_write_is_refused(tmp_path, monkeypatch):
    def refused(model, match, tokenizer=None, error=UnsupportedError, **options):
        tokenizer = tokenizer or byte_level("smollm")
        with pytest.raises(error, match=match):
            export(model, "gguf", tmp_path / "out", tokenizer=tokenizer, **options)
        assert not (tmp_path / "out").exists()

    gpt2 = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=32))
    refused(gpt2, r"GPT2LMHeadModel \('gpt2'\) to GGUF: it writes LlamaForCausalLM, Mistral")
    window = built(MistralForCausalLM, MistralConfig, num_hidden_layers=1, sliding_window=16)
    refused(window, "a window of 16 tokens")
    yarn = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
    llama = built(LlamaForCausalLM, LlamaConfig, num_hidden_layers=1, rope_parameters=yarn)
    refused(llama, "its rotary embedding is dynamic")
    model = built(LlamaForCausalLM, LlamaConfig, num_hidden_layers=1, hidden_act="gelu")
    refused(model, "its activation is gelu, not silu")
    model = built(LlamaForCausalLM, LlamaConfig, num_hidden_layers=1)
    refused(model, r"no weights 'q4'; known are f16, f32, q8_0", error=UsageError, weights="q4")
    other = byte_level("smollm")
    other.backend_tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    refused(model, "splits texts by Whitespace in another way", tokenizer=other)
    big = byte_level("smollm")
    big.add_tokens([f"word{number}" for number in range(80)])
    refused(model, "and the model 320 embeddings", tokenizer=big)
    with pytest.raises(UsageError, match="holds its tokenizer, and none is known"):
        export(model, "gguf", tmp_path / "out")
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[0, 0] = 1e5
    refused(model, "ffn_up.weight has numbers that are not finite: too large for float16")
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[0, 0] = float("nan")
    refused(model, r"weights in model.layers.0.mlp.up_proj.weight are not all", error=UsageError)
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    refused(model, r"pip install 'headcount\[gguf\]'", error=MissingExtraError)


def test_a_damaged_file_is_one_sentence(tmp_path, monkeypatch):
    model = built(LlamaForCausalLM, LlamaConfig, num_hidden_layers=1)
    monkeypatch.setattr(export_gguf, "_rope_factors", lambda model, size: torch.ones(3))
    with pytest.raises(UnsupportedError, match=r"llama.cpp does not run the file \(.*\)\.$"):
        export(model, "gguf", tmp_path / "out", tokenizer=byte_level("smollm"))
