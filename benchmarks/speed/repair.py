"""What the surgeon, recovery and clusters cost, beside passes over the same rows in the same run.

    python benchmarks/speed/repair.py [--model bert|llama] [--tokens 8192] [--turns 2] [--json]
        [--quick]

The surgeon's measurement and paths are compared with the importance pass over the same rows, and
recovery of a model without a third of its heads with one forward pass of it and one of the full
model. Models are made up, of the sizes of BERT-base and SmolLM2-135M. Everything runs in turns in
one process and is compared by its fastest turn in processor time. It ends with 1 where a goal is
missed; `--quick` only sees that it runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

import headcount as hc
from headcount.heads.choose import random_mask
from headcount.likeness.clusters import cluster, representatives
from headcount.models.batches import batches_for
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.pruning.surgeon import paths
from headcount.repair.recovery import recover_layers
from headcount.sensitivity.gradients import importance
from headcount.tasks.encoding import EncodedRows

GOALS = {"surgeon": 1.5, "recovery": 1.5, "cluster": 5.0}
HEADS = 1536


def build(name: str, tokens: int, quick: bool) -> tuple[Any, EncodedRows]:
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    small: dict[str, Any] = {"num_hidden_layers": 2} if quick else {}
    if name == "bert":
        model = BertForSequenceClassification(BertConfig(**small)).eval()
        ids = rng.integers(5, 30000, (max(2, tokens // 128), 128)).tolist()
        return model, EncodedRows({"input_ids": ids}, rng.integers(0, 2, len(ids)))
    sizes = {"num_hidden_layers": 30} | small
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=49152,
            hidden_size=576,
            intermediate_size=1536,
            num_attention_heads=9,
            num_key_value_heads=3,
            tie_word_embeddings=True,
            **sizes,
        )
    ).eval()
    ids = rng.integers(5, 49000, (max(2, tokens // 512), 512)).tolist()
    return model, EncodedRows({"input_ids": ids}, ids, {"input_ids": 0}, "causal-lm")


def forward(model: Any, rows: EncodedRows) -> None:
    with torch.no_grad():
        for batch in batches_for(model, rows, tokens=hc.Recover().tokens):
            model(**batch.inputs)


def seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    model, rows = build(name, 256 if options.quick else options.tokens, options.quick)
    small = remove(model, random_mask(layout(model), 1 / 3, 0))
    ways: dict[str, Callable[[], object]] = {
        "forward": lambda: forward(model, rows),
        "forward, pruned": lambda: forward(small, rows),
        "importance": lambda: importance(model, rows),
        "surgeon": lambda: paths(model, rows),
        "recovery": lambda: recover_layers(small, model, rows, options=hc.Recover()),
    }
    turns = [{way: seconds(run) for way, run in ways.items()} for _ in range(options.turns)]
    least = {way: min(turn[way] for turn in turns) for way in ways}
    return {
        "model": name,
        "tokens": sum(map(len, rows.columns["input_ids"])),
        "seconds": least,
        "surgeon": least["surgeon"] / least["importance"],
        "recovery": least["recovery"] / (least["forward"] + least["forward, pruned"]),
    }


def clustered(heads: int) -> float:
    """Seconds for a tenth, and for half of the heads, of points about 60 centres."""
    rng = np.random.default_rng(0)
    points = (
        rng.normal(size=(heads, 12)) + 3 * rng.normal(size=(60, 12))[rng.integers(0, 60, heads)]
    )
    matrix = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    matrix /= matrix.max()

    def run(count: int) -> None:
        representatives(matrix, cluster(matrix, count))

    return max(seconds(lambda count=count: run(count)) for count in (heads // 10, heads // 2))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["bert", "llama"])
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    names = [options.model] if options.model else ["bert", "llama"]
    results = [measure(name, options) for name in names]
    took = clustered(60 if options.quick else HEADS)
    if options.json:
        print(json.dumps({"models": results, "cluster": took}, indent=2))
    else:
        for row in results:
            print(
                f"{row['model']:5} {row['tokens']:,} tokens: surgeon {row['surgeon']:.2f} x the "
                f"importance pass (goal {GOALS['surgeon']}), recovery {row['recovery']:.2f} x a "
                f"forward pass of both models (goal {GOALS['recovery']})"
            )
        print(f"cluster, {HEADS:,} heads: {took:.1f} s of processor time (goal {GOALS['cluster']})")
    missed = took > GOALS["cluster"] or any(
        row[name] > GOALS[name] for row in results for name in ("surgeon", "recovery")
    )
    return int(missed and not options.quick)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
