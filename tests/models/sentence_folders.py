"""Folders of sentence-transformers around a tiny BERT, written by hand as older versions do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertModel

POOLING = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


def tiny_encoder(tokenizer: Any, **changes: Any) -> BertModel:
    settings = {
        "vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 48, "max_position_embeddings": 64,
        "pad_token_id": tokenizer.pad_token_id, **changes,
    }  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(BertConfig(**settings))
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "embeddings" not in name:
                torch.nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
    return model.eval()


def write_modules(folder: Path, *modes: str, dense: int = 0, normalize: bool = False) -> None:
    """The modules behind a model of width 32."""
    names = ["Transformer", "Pooling", *["Dense"] * bool(dense), *["Normalize"] * normalize]
    paths = ["", *(f"{at}_{name}" for at, name in enumerate(names) if at)]
    listed = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{name}"}
        for at, (path, name) in enumerate(zip(paths, names, strict=True))
    ]
    write(folder / "modules.json", listed)
    config = {"word_embedding_dimension": 32} | {POOLING[mode]: True for mode in modes}
    write(folder / "1_Pooling" / "config.json", config)
    if dense:
        size = 32 * len(modes)
        tanh = "torch.nn.modules.activation.Tanh"
        config = {"in_features": size, "out_features": dense, "bias": True}
        write(folder / "2_Dense" / "config.json", config | {"activation_function": tanh})
        weights = torch.randn(dense, size, generator=torch.Generator().manual_seed(3))
        weights = {"linear.weight": weights / 4, "linear.bias": torch.linspace(-1, 1, dense)}
        save_file(weights, folder / "2_Dense" / "model.safetensors")


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def sentence_folder(folder: Path, tokenizer: Any, *modes: str, **modules: Any) -> Path:
    """A whole folder, with modules where modes are named."""
    tiny_encoder(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if modes:
        write_modules(folder, *modes, **modules)
    return folder
