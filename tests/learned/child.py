"""Training of gates in a process of its own, for tests that kill it or run two of them.

python child.py METHOD OUT KILL_AT

KILL_AT: forward passes before the process kills itself, 0 for never.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
from transformers import AutoTokenizer

import launching
from headcount.learned.methods import GateOptions, HardConcrete, StraightThrough, Subset
from headcount.learned.run import LearnedGates, learn
from headcount.models.shipped import locate
from headcount.training.options import TrainOptions
from training.conftest import pets, tiny

GATES: dict[str, Any] = {
    "gate_lr": 2.0,
    "gate_optimizer": "sgd",
    "gate_schedule": "constant",
    "trace": 10,
    "score_points": 5,
    "score_rows": 70,
}
METHODS: dict[str, GateOptions] = {
    "straight-through": StraightThrough(**GATES, gate_momentum=0.9),
    "hard-concrete": HardConcrete(**GATES, hold="shift"),
    "subset": Subset(**GATES),
}
TRAIN = TrainOptions(
    epochs=2, batch_size=16, learning_rate=1e-3, warmup=3, save_every=3, accumulate=2, log_every=1
)
# without dropout, and with an Adam that does not blow up rounding
STILL = replace(TRAIN, attention_dropout=0.0, hidden_dropout=0.0, epsilon=1e-3, save_every=None)


def run(method: str, out: Path | None, options: TrainOptions, kill_at: int = 0) -> LearnedGates:
    """70 rows: the last batch of an epoch is not full."""
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    model: Any = tiny(tokenizer)
    # the model is copied for training, and its hooks with it
    launching.kill_at(model, kill_at)
    return learn(
        model, pets(rows=70), METHODS[method], 0.5, train=options,
        tokenizer=tokenizer, device="cpu", out=out, gap=0,
    )  # fmt: skip


if __name__ == "__main__":
    chosen = TRAIN if "WORLD_SIZE" not in os.environ else STILL
    found = run(sys.argv[1], Path(sys.argv[2]), chosen, int(sys.argv[3]))
    if torch.distributed.is_initialized():
        rank = torch.distributed.get_rank()
        found.trace.save(Path(sys.argv[2]) / f"rank-{rank}.npz")
