"""Training in a process of its own, for tests that kill it or run two of them.

python child.py KIND OUT KILL_AT

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
from transformers import AutoTokenizer, BertForMaskedLM

import launching
from headcount.models.shipped import locate
from headcount.tasks import Task, open_task
from headcount.training.finetune import TrainingResult, finetune
from headcount.training.options import TrainOptions
from training.conftest import pets, tiny

RESUMED = TrainOptions(
    epochs=2, batch_size=16, learning_rate=1e-3, warmup=3, save_every=3, accumulate=2, log_every=1
)


def subject(kind: str) -> tuple[Any, Any, Task]:
    """(model, tokenizer, task) with 70 rows: the last batch of an epoch is not full."""
    tokenizer = AutoTokenizer.from_pretrained(locate("pocket-bert"))
    model: Any = tiny(tokenizer)
    if kind == "masked-lm":
        with torch.random.fork_rng():
            torch.manual_seed(0)
            masked = BertForMaskedLM(model.config)
        return masked, tokenizer, open_task("pocket-corpus", size=70)
    return model, tokenizer, pets(rows=70)


def still(options: TrainOptions) -> TrainOptions:
    """Without dropout, and with an Adam that does not blow up rounding."""

    return replace(
        options, attention_dropout=0.0, hidden_dropout=0.0, epsilon=1e-3, save_every=None
    )


def run(kind: str, out: Path | None, options: TrainOptions, kill_at: int = 0) -> TrainingResult:
    model, tokenizer, task = subject(kind)
    launching.kill_at(model, kill_at)
    settings = {"tokenizer": tokenizer, "options": options, "out": out, "device": "cpu"}
    return finetune(model, task, evaluation=False, **settings)


if __name__ == "__main__":
    chosen = RESUMED if "WORLD_SIZE" not in os.environ else still(RESUMED)
    run(sys.argv[1], Path(sys.argv[2]), chosen, int(sys.argv[3]))
    if torch.distributed.is_initialized() and torch.distributed.get_rank() == 0:
        sys.stdout.write(f"{torch.distributed.get_world_size()}\n")
