"""A short fine-tuning and scoring loop, enough to measure what the pocket tasks need.

The real thing, with everything a user wants, is `headcount.training`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headcount.tasks.pocket.scoring import score
from headcount.tasks.pocket.world import POCKET_TASKS


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How a model is fine-tuned."""

    epochs: int = 3
    batch: int = 32
    rate: float = 3e-4  # of AdamW, rising over the first tenth, then falling to nothing
    decay: float = 0.01
    seed: int = 0


def encode(task: str, tokenizer: Any, rows: list[dict[str, Any]]) -> dict[str, Tensor]:
    """The rows as one padded batch, with `labels`."""
    about = POCKET_TASKS[task]
    texts = [[row[field] for row in rows] for field in about.fields]
    batch = dict(tokenizer(*texts, padding=True, return_tensors="pt"))
    kind = torch.float32 if about.kind == "regression" else torch.int64
    batch["labels"] = torch.tensor([row["label"] for row in rows], dtype=kind)
    return batch


def classifier(task: str, folder: Any, *, pretrained: bool = True, seed: int = 0) -> Any:
    """The BERT in `folder` with a fresh head for the task; or only its shape, untrained."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    about = POCKET_TASKS[task]
    config = AutoConfig.from_pretrained(folder, num_labels=max(1, len(about.labels)))
    config.problem_type = (
        "regression" if about.kind == "regression" else "single_label_classification"
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if pretrained:
            return AutoModelForSequenceClassification.from_pretrained(folder, config=config)
        return AutoModelForSequenceClassification.from_config(config)


def fine_tune(
    model: Any, task: str, tokenizer: Any, rows: list[dict[str, Any]], tuning: Tuning
) -> None:
    """Train in place."""
    steps = tuning.epochs * -(-len(rows) // tuning.batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=tuning.rate, weight_decay=tuning.decay)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    generator = torch.Generator().manual_seed(tuning.seed)
    model.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(tuning.seed)  # for dropout
        for _ in range(tuning.epochs):
            order = torch.randperm(len(rows), generator=generator).tolist()
            for start in range(0, len(rows), tuning.batch):
                part = [rows[place] for place in order[start : start + tuning.batch]]
                loss = model(**encode(task, tokenizer, part)).loss
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
    model.eval()


@torch.inference_mode()
def rate(model: Any, task: str, tokenizer: Any, rows: list[dict[str, Any]]) -> float:
    """The task's metric on the rows."""
    about = POCKET_TASKS[task]
    model.eval()
    found: list[np.ndarray] = []
    for start in range(0, len(rows), 250):
        batch = encode(task, tokenizer, rows[start : start + 250])
        batch.pop("labels")
        logits = model(**batch).logits
        chosen = logits[:, 0] if about.kind == "regression" else logits.argmax(dim=1)
        found.append(chosen.numpy())
    truth = np.array([row["label"] for row in rows])
    return score(about.metric, truth, np.concatenate(found))
