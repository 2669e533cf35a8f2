"""What roles and replaceable shares cost beside the model's own forward pass with attentions.

    python benchmarks/speed/roles.py [--rounds 5] [--json] [--quick]

A BERT of MiniLM's size (6 layers x 12 heads, width 384, random weights) reads 16 rows of 128
tokens on one core. Both run in turn, round by round, in CPU time, and the fastest round counts: on
a shared machine the others measure the neighbours. `--quick` only sees that it runs.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import BertConfig, BertModel

from headcount.behaviour.attention import AttentionMeans
from headcount.behaviour.tokens import marks_of
from headcount.models.find import layout
from headcount.models.hooks import evaluating


def measure(rounds: int, rows: int, length: int, layers: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=384,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=1536,
        attn_implementation="eager",
    )
    model = BertModel(config).eval()
    ids = torch.randint(1000, 30000, (rows, length))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    marks = marks_of(model, None)
    marks = marks.told(model, [batch])
    looks = AttentionMeans(model, layout(model), marks)
    bare = AttentionMeans(model, layout(model), marks)
    bare.outputs.sites = []  # attention alone: nothing is summed

    def plain() -> None:
        with torch.no_grad():
            model(**batch, output_attentions=True)

    calls = {
        "forward": plain,
        "attention alone": lambda: bare.take(batch),
        "with replaceable shares": lambda: looks.take(batch),
    }
    best = dict.fromkeys(calls, float("inf"))
    with evaluating(model):
        for turn in range(rounds + 1):
            for name, call in calls.items():
                start = time.process_time()
                call()
                if turn:
                    best[name] = min(best[name], time.process_time() - start)
    start = time.process_time()
    looks.outputs.solve(1e-3)
    results = {f"ms, {name}": round(1000 * seconds, 1) for name, seconds in best.items()}
    results |= {f"{name} / forward": best[name] / best["forward"] for name in list(calls)[1:]}
    solving = round(time.process_time() - start, 2)
    return results | {"s to solve, once": solving, "blocks": looks.outputs.blocks}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    results = measure(1, 2, 16, 1) if options.quick else measure(options.rounds, 16, 128, 6)
    if options.json:
        print(json.dumps(results))
    else:
        for name, value in results.items():
            print(f"{name:30} {value:.4g}")


if __name__ == "__main__":
    main()
