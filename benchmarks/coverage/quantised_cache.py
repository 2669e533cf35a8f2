"""Perplexity and bytes a token of a full and a pruned decoder with a cache of fewer bits.

    python benchmarks/coverage/quantised_cache.py MODEL PRUNED… --text FILE [--windows 8]

Windows of 512 tokens from the middle of the text run in steps of 64 through transformers' caches:
the plain one, and `QuantizedCache` with eight bits (fp8) and four (quanto, which needs `pip install
optimum-quanto`; without it that line is left out). The tokenizer is the first MODEL's.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import torch
from transformers import AutoTokenizer, DynamicCache, QuantizedCache

import headcount as hc

LENGTH, STEP = 512, 64
INT4 = {"nbits": 4, "q_group_size": 64, "residual_length": STEP}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--windows", type=int, default=8)
    options = parser.parse_args()
    tokenizer: Any = AutoTokenizer.from_pretrained(options.models[0])
    text = options.text.read_text(encoding="utf-8")
    ids = tokenizer(text[len(text) // 2 :][: options.windows * LENGTH * 8])["input_ids"]
    windows = torch.tensor(ids[: options.windows * LENGTH]).reshape(options.windows, LENGTH)
    print("model  key-value heads  cache  bytes a token  perplexity")
    for name in options.models:
        model: Any = hc.load(name, dtype=torch.float32)
        groups = sum(hc.layout(model)["decoder"].groups)
        caches = {"float32": lambda config: DynamicCache(config=config)}
        caches["fp8"] = lambda config: QuantizedCache("fp8", config)
        if find_spec("optimum") and find_spec("optimum.quanto"):
            caches["int4 (quanto)"] = lambda config: QuantizedCache("quanto", config, **INT4)
        for kind, cache_of in caches.items():
            loss, size = measured(model, windows, cache_of)
            print(
                f"{Path(name).name}  {groups}  {kind}  {size:,.0f}  {math.exp(loss):.2f}",
                flush=True,
            )
    return 0


def measured(model: Any, windows: torch.Tensor, cache_of: Any) -> tuple[float, float]:
    """(mean loss of a token after the first step, bytes of cache a token)."""
    losses, sizes = [], []
    for window in windows:
        cache = cache_of(model.config)
        with torch.no_grad():
            steps = window.split(STEP)
            logits = [model(step[None], past_key_values=cache).logits[0] for step in steps]
        predicted, tokens = torch.cat(logits)[STEP - 1 : -1], window[STEP:]
        losses.append(torch.nn.functional.cross_entropy(predicted, tokens))
        sizes += [sum(stored(value) for layer in cache.layers for value in vars(layer).values())]
    return float(torch.stack(losses).mean()), sum(sizes) / windows.numel()


def stored(value: Any) -> int:
    """Bytes of the tensors in what a cache holds."""
    if isinstance(value, tuple):
        return sum(map(stored, value))
    if hasattr(value, "__tensor_flatten__"):
        return sum(stored(getattr(value, name)) for name in value.__tensor_flatten__()[0])
    return value.nbytes if isinstance(value, torch.Tensor) else 0


if __name__ == "__main__":
    sys.exit(main())
