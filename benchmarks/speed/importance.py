"""Head importance by per-example gates against the usual loop over single examples.

    python benchmarks/speed/importance.py [--json] [--model pocket|base] [--quick]

The rival is what published code does: batches of one example, one gate per head, and
`loss.backward()` with the gradients of all parameters. Both see the same rows of 25 tokens, in
turns in one process, and are compared by their fastest turns: by the clock and by processor time,
which other programs disturb less and which the goal is held to: it ends with 1 where it is missed.
They must agree to 1e-4 of the largest score. `--quick` only sees that it runs.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification

from headcount.models.find import layout
from headcount.models.gates import gate, open_gates
from headcount.sensitivity.gradients import importance
from headcount.tasks.encoding import EncodedRows

LENGTH = 25
SIZES = {
    # name -> (layers, heads, width, inner width, words, rows of a turn, goal)
    "base": (12, 12, 768, 3072, 30522, 24, 2.5),
    "pocket": (6, 8, 128, 256, 94, 240, 5.0),
}
TURNS = 3


def build(name: str) -> tuple[Any, EncodedRows]:
    layers, heads, width, inner, words, rows, _ = SIZES[name]
    config = BertConfig(
        vocab_size=words,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
    )
    torch.manual_seed(0)
    model = BertForSequenceClassification(config).eval()
    rng = np.random.default_rng(0)
    ids = rng.integers(5, words, (rows, LENGTH)).tolist()
    return model, EncodedRows({"input_ids": ids}, rng.integers(0, 2, rows))


def one_by_one(model: Any, rows: EncodedRows) -> np.ndarray:
    """The usual loop: one example at a time, all gradients."""
    heads = layout(model)
    total = np.zeros(len(heads))
    gates = open_gates(heads)
    flat = [value for values in gates.values() for value in values]
    with gate(model, gates):
        for row in range(len(rows)):
            batch = rows.collate([rows[row]])
            model.zero_grad(set_to_none=True)
            for value in flat:
                value.grad = None
            model(**batch).loss.backward()
            total += np.concatenate([value.grad.abs().numpy() for value in flat])
    model.zero_grad(set_to_none=True)
    return total / len(rows)


def timed(function: Callable[[], Any]) -> tuple[float, float, Any]:
    clock, processor = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - clock, time.process_time() - processor, result


def measure(name: str, turns: int) -> dict[str, Any]:
    model, rows = build(name)
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    difference = 0.0
    for turn in range(turns + 1):
        *a, mine = timed(lambda: importance(model, rows))
        *b, usual = timed(lambda: one_by_one(model, rows))
        difference = float(np.abs(np.array(mine.values) - usual).max() / usual.max())
        if turn:  # the first warms up
            ours.append((a[0], a[1]))
            theirs.append((b[0], b[1]))
    if difference > 1e-4:
        raise SystemExit(f"{name}: the two differ by {difference:.2g} of the largest score")
    fastest = [np.min(side, axis=0) for side in (ours, theirs)]
    return {
        "model": name,
        "rows": len(rows),
        "tokens": LENGTH,
        "ours_seconds": float(fastest[0][0]),
        "loop_seconds": float(fastest[1][0]),
        "ratio": float(fastest[1][0] / fastest[0][0]),
        "ratio_processor": float(fastest[1][1] / fastest[0][1]),
        "goal": SIZES[name][-1],
        "difference": difference,
    }


def main(arguments: list[str]) -> int:
    names = list(SIZES)
    if "--model" in arguments:
        names = [arguments[arguments.index("--model") + 1]]
    quick = "--quick" in arguments
    results = [measure(name, 1 if quick else TURNS) for name in (["pocket"] if quick else names)]
    missed = not quick and any(result["ratio_processor"] < result["goal"] for result in results)
    if "--json" in arguments:
        print(json.dumps(results, indent=2))
        return int(missed)
    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, "
        f"{torch.get_num_threads()} threads, {platform.processor() or platform.machine()}"
    )
    for result in results:
        print(
            f"{result['model']:7} {result['rows']} rows of {result['tokens']} tokens: "
            f"{result['loop_seconds']:.2f} s by the loop, {result['ours_seconds']:.2f} s by gates: "
            f"{result['ratio']:.1f} x ({result['ratio_processor']:.1f} x in processor time, goal "
            f"{result['goal']}); they differ by {result['difference']:.1g}"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
