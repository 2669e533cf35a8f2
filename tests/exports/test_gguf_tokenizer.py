"""Tokenizers of the kinds llama.cpp knows, read by llama.cpp."""

from __future__ import annotations

import pytest
from gguf import GGUFReader
from tokenizers import Tokenizer, decoders, models, normalizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from exports.exporting import built, byte_level
from headcount.base.errors import UnsupportedError
from headcount.exports.export import export
from headcount.exports.gguf_tokenizer import SPLITS


def pieces(prepend):
    """A tokenizer of SentencePiece's kind: spaces are ▁, unknown letters bytes."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2}
    vocab |= {f"<0x{number:02X}>": 3 + number for number in range(256)}
    merges = [("t", "h"), ("▁", "th"), ("▁th", "e"), ("i", "n"), ("▁", "a"), ("in", "g")]
    for piece in [*map("".join, merges), *"▁abcdefghilnorst"]:
        vocab.setdefault(piece, len(vocab))
    content = Tokenizer(models.BPE(vocab, merges, byte_fallback=True, unk_token="<unk>"))
    steps = [normalizers.Prepend("▁")] if prepend else []
    content.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    content.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback()])
    return PreTrainedTokenizerFast(
        tokenizer_object=content, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


@pytest.mark.parametrize("prepend", [True, False])
def test_sentencepiece_tokenizers(prepend, tmp_path):
    model = built(LlamaForCausalLM, LlamaConfig, num_hidden_layers=1)
    done = export(model, "gguf", tmp_path / "out", tokenizer=pieces(prepend), weights="f32")
    assert done.details.endswith("15 of 15 with f32 weights")


@pytest.mark.parametrize("split", SPLITS)
def test_byte_level_tokenizers(split, tmp_path):
    model = built(LlamaForCausalLM, LlamaConfig, num_hidden_layers=1)
    done = export(model, "gguf", tmp_path / "out", tokenizer=byte_level(split), weights="f32")
    assert done.details.endswith("15 of 15 with f32 weights")
    fields = GGUFReader(done.folder / "model.gguf").fields
    assert fields["tokenizer.ggml.pre"].contents() == split


def test_a_text_that_llama_cpp_splits_in_another_way_is_seen(tmp_path, monkeypatch):
    other = byte_level("gpt-2")
    monkeypatch.setitem(SPLITS, "smollm", SPLITS["gpt-2"])
    monkeypatch.delitem(SPLITS, "gpt-2")
    model = built(LlamaForCausalLM, LlamaConfig, num_hidden_layers=1)
    with pytest.raises(
        UnsupportedError, match=r"this tokenizer for llama.cpp: '1, 2, 3.* here and"
    ):
        export(model, "gguf", tmp_path / "out", tokenizer=other)
