"""What learned gates cost: a gated training step against an ungated one.

    python benchmarks/speed/gates.py [--json] [--model pocket|minilm] [--method straight-through]
        [--steps 60] [--quick]

Two copies of one model take the same batches in turns in one process: one is trained as it is,
the other with gates on every head that are trained too (set, differentiated, moved by their own
optimizer, traced). Both do forward, backward, clipping and AdamW. Compared are the medians of the
turns, by processor time, which other programs disturb less, and by the clock. Goal: 1.05.
`--quick` only sees that it runs.
"""

from __future__ import annotations

import copy
import json
import statistics
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification

from headcount.learned.keeper import Keeper
from headcount.learned.methods import HardConcrete, StraightThrough, Subset
from headcount.models.find import layout

GOAL = 1.05
SIZES = {
    # name -> (layers, heads, width, inner width, words, rows, tokens)
    "pocket": (6, 8, 128, 256, 94, 32, 24),
    "minilm": (6, 12, 384, 1536, 30522, 32, 40),
}
KINDS: dict[str, Callable[[], Any]] = {
    "straight-through": StraightThrough,
    "hard-concrete": HardConcrete,
    "subset": Subset,
}


def build(name: str) -> tuple[Any, dict[str, torch.Tensor]]:
    layers, heads, width, inner, words, rows, tokens = SIZES[name]
    config = BertConfig(
        vocab_size=words,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
    )
    torch.manual_seed(0)
    batch = {
        "input_ids": torch.randint(5, words, (rows, tokens)),
        "attention_mask": torch.ones(rows, tokens, dtype=torch.long),
        "labels": torch.randint(0, 2, (rows,)),
    }
    return BertForSequenceClassification(config).train(), batch


def trained(
    model: Any, batch: dict[str, torch.Tensor], keeper: Keeper | None, steps: int
) -> Callable[[], None]:
    """A function that takes one step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    state = SimpleNamespace(global_step=0, max_steps=4 * steps, is_world_process_zero=True)
    if keeper is not None:
        keeper.on_train_begin(None, state, None)

    def step() -> None:
        if keeper is not None:
            keeper.on_step_begin(None, state, None)
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if keeper is not None:
            keeper.on_pre_optimizer_step(None, state, None)
        optimizer.step()
        model.zero_grad()
        state.global_step += 1
        if keeper is not None:
            keeper.on_step_end(None, state, None)

    return step


def verdict(ratio: float, *, quick: bool) -> int:
    """1 where the goal is missed; four steps on whatever machine say nothing."""
    return int(ratio > GOAL and not quick)


def main() -> int:
    def option(name: str, default: str) -> str:
        return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default

    name, method = option("--model", "pocket"), option("--method", "straight-through")
    steps = int(option("--steps", "4" if "--quick" in sys.argv else "60"))
    plain, batch = build(name)
    gated = copy.deepcopy(plain)
    heads = layout(plain)
    keeper = Keeper(heads, KINDS[method](), keep=len(heads) // 2)
    times: dict[str, list[tuple[float, float]]] = {"ungated": [], "gated": []}
    with keeper.attached(gated):
        takes = {
            "ungated": trained(plain, batch, None, steps),
            "gated": trained(gated, batch, keeper, steps),
        }
        for turn in range(steps + 5):
            for which in sorted(takes, reverse=turn % 2 == 0):
                clock, cpu = time.perf_counter(), time.process_time()
                takes[which]()
                if turn >= 5:  # the first few warm up
                    spent = (time.process_time() - cpu, time.perf_counter() - clock)
                    times[which].append(spent)
    medians = {
        which: [statistics.median(column) for column in zip(*spent, strict=True)]
        for which, spent in times.items()
    }
    ratios = [a / b for a, b in zip(medians["gated"], medians["ungated"], strict=True)]
    result = {
        "model": name,
        "method": method,
        "heads": len(heads),
        "steps": steps,
        "ungated_ms": [round(1000 * value, 2) for value in medians["ungated"]],
        "gated_ms": [round(1000 * value, 2) for value in medians["gated"]],
        "ratio_cpu": round(ratios[0], 4),
        "ratio_clock": round(ratios[1], 4),
        "goal": GOAL,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    if "--json" in sys.argv:
        print(json.dumps(result, indent=2))
    else:
        print(
            f"{name}, {method}, {len(heads)} heads, medians of {steps} steps in turns: ungated "
            f"{result['ungated_ms'][0]} ms, gated {result['gated_ms'][0]} ms of processor time: "
            f"{ratios[0]:.3f} x (by the clock {ratios[1]:.3f} x); goal {GOAL} x"
        )
    return verdict(ratios[0], quick="--quick" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
