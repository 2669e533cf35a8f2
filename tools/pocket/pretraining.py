"""The loop that makes the shipped weights: seeded, resumable after a kill, to the same bytes.

Step n's batch depends on the seed and n alone and nothing drops out, so a checkpoint of weights,
optimizer and step is all a resumed run needs.
"""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headcount.base.errors import UsageError
from tools.pocket.muon import Muon

Batch = dict[str, Tensor]
Batches = Callable[[int], list[Batch]]
Loss = Callable[[Any, Batch], Tensor]
POOL = 8  # batches that are made together, so that each holds texts of like length


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long and how fast."""

    steps: int
    batch: int = 64
    rate: float = 2e-3  # of both optimizers at their peak
    warmup: float = 0.1  # share of the steps that lead to the peak; a cosine leads down
    decay: float = 0.01
    seed: int = 0
    save_every: int = 200

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, as a share of the peak."""
        warm = max(1, round(self.warmup * self.steps))
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, self.steps - warm)))


def own_loss(model: Any, batch: Batch) -> Tensor:
    """The loss a transformers model gives itself."""
    return model(**batch).loss


def pretrain(
    model: Any,
    batches: Batches,
    plan: Plan,
    checkpoint: Path,
    say: Callable[[str], None],
    loss_of: Loss = own_loss,
) -> None:
    """Train `model` in place; `batches(k)` gives the k-th pool of batches."""
    optimizers = _optimizers(model, plan)
    first = _resume(model, optimizers, plan, checkpoint)
    if first:
        say(f"resuming at step {first}")
    model.train()
    pool: list[Batch] = []
    began, total = time.monotonic(), 0.0
    for step in range(first, plan.steps):
        if step % POOL == 0 or not pool:
            pool = batches(step // POOL)
        loss = loss_of(model, pool[step % POOL])
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = plan.rate * plan.rate_at(step)
            optimizer.step()
        total += loss.item()
        if (step + 1) % 100 == 0:
            spent = time.monotonic() - began
            say(f"step {step + 1} of {plan.steps}, loss {total / 100:.3f}, {spent:.0f} s")
            total = 0.0
        if (step + 1) % plan.save_every == 0 or step + 1 == plan.steps:
            _save(model, optimizers, plan, step + 1, checkpoint)
    model.eval()


def _optimizers(model: Any, plan: Plan) -> list[torch.optim.Optimizer]:
    """Muon for the matrices between the embeddings and the answer, AdamW for the rest."""
    inner = [
        weight
        for name, weight in model.named_parameters()
        if weight.ndim == 2 and ".layer" in name and "embed" not in name
    ]
    taken = {id(weight) for weight in inner}
    rest = [weight for weight in model.parameters() if id(weight) not in taken]
    return [
        Muon(inner, lr=plan.rate, weight_decay=plan.decay),
        torch.optim.AdamW(rest, lr=plan.rate, weight_decay=plan.decay, betas=(0.9, 0.98)),
    ]


def _save(model: Any, optimizers: list[Any], plan: Plan, step: int, checkpoint: Path) -> None:
    state = {
        "plan": dataclasses.asdict(plan),
        "step": step,
        "model": model.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in optimizers],
    }
    unfinished = checkpoint.with_suffix(".part")
    torch.save(state, unfinished)
    os.replace(unfinished, checkpoint)


def _resume(model: Any, optimizers: list[Any], plan: Plan, checkpoint: Path) -> int:
    """Load the checkpoint if there is one; the step to go on with."""
    if not checkpoint.exists():
        return 0
    state = torch.load(checkpoint, weights_only=True)
    if state["plan"] != dataclasses.asdict(plan):
        raise UsageError(
            f"{checkpoint} belongs to a run with other settings. Delete it or choose another --out."
        )
    model.load_state_dict(state["model"])
    for optimizer, kept in zip(optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(kept)
    return int(state["step"])
