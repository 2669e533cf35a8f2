"""What the tests of exports share: small pruned models, and inputs that no export has seen."""

from __future__ import annotations

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from headcount.exports.gguf_tokenizer import SPLITS
from headcount.models.find import layout
from headcount.models.probe import probe_inputs
from headcount.models.remove import remove
from models.zoo import build, masks, mixed, shallow


def pruned(family, **changes):
    model = build(family, **changes)
    return remove(model, mixed(layout(model)))


def unseen(model):
    """Inputs that the export has not seen when it verified itself."""
    inputs = probe_inputs(model, batch=2, length=9, seed=7)
    if not hasattr(model.config, "pad_token_id"):
        inputs.pop("attention_mask", None)
    return inputs


def one_layer(family):
    model = build(family, **shallow(family, 1))
    return remove(model, masks(layout(model))["uneven"])


def two_layers(family):
    """Layer 0 emptied, layer 1 uneven."""
    return pruned(family, **shallow(family, 2))


def feeds_of(model):
    """Inputs of a shape that no export has seen."""
    inputs = probe_inputs(model, batch=5, length=13, seed=3)
    if getattr(model.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = inputs["input_ids"] % 2
    return inputs


def numpy(feeds):
    return {name: tensor.numpy() for name, tensor in feeds.items()}


def byte_level(split):
    """A tokenizer of bytes and a few merges that splits texts in one of llama.cpp's ways."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("1", ","), ("2", "1"), ("Ġ", "a"), ("Ċ", "Ċ")]
    merges += [("3", "4"), ("34", "5"), ("i", "n"), ("Ġ", "in"), ("'", "s")]
    vocab = {piece: number for number, piece in enumerate([*letters, *map("".join, merges)])}
    vocab["<end>"] = len(vocab)
    content = Tokenizer(models.BPE(vocab, merges, ignore_merges=split == "llama-bpe"))
    made = {"ByteLevel": pre_tokenizers.ByteLevel, "Digits": pre_tokenizers.Digits}
    steps = []
    for step in SPLITS[split]:
        options = {key: value for key, value in step.items() if key != "type"}
        if step["type"] == "Split":
            pattern = Regex(options["pattern"]["Regex"])
            steps.append(pre_tokenizers.Split(pattern, "isolated"))
        else:
            steps.append(made[step["type"]](**options))
    content.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    content.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=content, eos_token="<end>")


LLAMA = {
    "hidden_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 8,
    "intermediate_size": 96,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
}


def built(kind, config, **changes):
    """A small model of Llama's block whose every part matters."""
    torch.manual_seed(0)
    model = kind(config(**(LLAMA | {"vocab_size": 320} | changes))).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                parameter.add_(torch.randn_like(parameter) / 4)
    return model
