"""The scorer of attention maps is trained once, without labels, and scores every head.

What it is for: `meta.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from headcount.base.errors import UsageError
from headcount.heads import Layout, Scores
from headcount.models.batches import batches_for
from headcount.models.capture import AttentionSource, capture
from headcount.models.find import layout as layout_of_model
from headcount.models.find import unwrap
from headcount.models.gates import gate
from headcount.models.hooks import evaluating
from headcount.pruning.scorer import Scorer, layer_scores, mean_scores
from headcount.pruning.topk import draw_top
from headcount.sensitivity.gradients import frozen
from headcount.tasks.as_rows import Rows
from headcount.tasks.encoding import EncodedRows

ROWS, GROUP = 16, 8
"""Rows of a training step, and of the groups in which they are compared."""
KEPT_DIMENSIONS = 0.2
SHARPNESS = 10.0


def train_scorer(
    model: nn.Module, inputs: Rows, *, steps: int = 200, learning_rate: float = 0.5, seed: int = 0
) -> tuple[Scorer, list[float]]:
    """A scorer trained without labels on rows or batches, and its losses; the model stays as it is.

    Every step: half of the layers are drawn; in each, half of the heads, by their scores with
    Gumbel noise; the others close. The loss is the KL divergence between the softmaxed pairwise
    similarities of the rows with all heads and with the drawn ones.
    """
    if steps < 1 or not learning_rate > 0:
        raise UsageError(
            f"A scorer needs at least one step and a learning rate above 0, not {steps} and "
            f"{learning_rate}."
        )
    base = _base(model)
    layout = layout_of_model(base)
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        scorer = Scorer().to(next(base.parameters()).device)
    optimizer = torch.optim.SGD(scorer.parameters(), lr=learning_rate)
    losses: list[float] = []
    with evaluating(base), frozen(base):
        for batch in _forever(inputs, seed, steps):
            asked = next(batches_for(base, [batch])).inputs
            maps, whole_states = _look(base, asked)
            thinned = _thinned(layout, generator)
            scores = {key: layer_scores(scorer, maps, asked, key) for key in thinned}
            gates = _drawn(layout, scores, generator)
            with gate(base, gates):
                states = _states(base, asked)
            loss = _apart(whole_states, states, generator)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(scorer.parameters(), 1.0)
            optimizer.step()
            losses.append(float(loss.detach()))
            if not np.isfinite(losses[-1]):
                raise UsageError(f"The scorer's loss was not a number at step {len(losses)}.")
    return scorer.eval(), losses


def score_heads(model: nn.Module, scorer: Scorer, inputs: Rows) -> Scores:
    """The mean score of every head over all rows; a shared layer's is the mean over its uses."""
    base = _base(model)
    layout = layout_of_model(base)
    sums = {(stack, layer): torch.zeros(heads) for stack, layer, heads in layout.layers()}
    rows, uses = 0, dict.fromkeys(sums, 0)
    with evaluating(base), torch.no_grad():
        for asked in (batch.inputs for batch in batches_for(base, inputs)):
            maps, _ = _look(base, asked)
            count = len(next(iter(maps.values())))
            rows += count
            for place, attention in maps.items():
                sums[place[:2]] += count * mean_scores(scorer, attention, asked, place).cpu()
                uses[place[:2]] = max(uses[place[:2]], place.use + 1)
    values = [v for key in sums for v in (sums[key] / max(1, rows * uses[key])).tolist()]
    return Scores(layout, tuple(values))


def _base(model: nn.Module) -> nn.Module:
    """The model without its task head: its last states are the representation."""
    bare = unwrap(model)
    return getattr(bare, "base_model", bare)


def _states(base: nn.Module, asked: dict[str, Any]) -> Tensor:
    """(row, dimension) the mean of the last states over tokens that count."""
    states = base(**asked).last_hidden_state
    mask = asked.get("decoder_attention_mask" if "decoder_input_ids" in asked else "attention_mask")
    if mask is None or mask.shape != states.shape[:2]:
        return states.mean(1)
    real = mask[:, :, None].to(states.dtype)
    return (states * real).sum(1) / real.sum(1).clamp_min(1)


def _look(base: nn.Module, asked: dict[str, Any]) -> tuple[dict[AttentionSource, Tensor], Tensor]:
    """Every layer's attention, and the representation, with all heads."""
    maps: dict[AttentionSource, Tensor] = {}
    with torch.no_grad(), capture(base, maps.__setitem__):
        states = _states(base, asked)
    return maps, states


def _thinned(layout: Layout, generator: torch.Generator) -> list[tuple[str, int]]:
    """(stack, layer) of about half of the layers, at least one."""
    layers = list(layout.layers())
    thin = torch.rand(len(layers), generator=generator) < 0.5
    if not thin.any():
        thin[int(torch.randint(len(layers), (1,), generator=generator))] = True
    return [layer[:2] for layer, so in zip(layers, thin.tolist(), strict=True) if so]


def _drawn(
    layout: Layout, scores: dict[tuple[str, int], Tensor], generator: torch.Generator
) -> dict[str, list[Tensor]]:
    """Gates: layers with scores keep half of their heads, drawn by score; others keep all."""
    gates: dict[str, list[Tensor]] = {stack.name: [] for stack in layout.stacks}
    for stack, layer, heads in layout.layers():
        own = scores.get((stack, layer))
        if own is None or not heads:
            gates[stack].append(torch.ones(heads))
        else:
            gates[stack].append(draw_top(own.cpu(), -(-heads // 2), generator))
    return gates


def _apart(whole_states: Tensor, states: Tensor, generator: torch.Generator) -> Tensor:
    """How far pairwise similarities moved: the mean KL divergence over rows."""
    chosen = torch.rand(states.shape[1], generator=generator) < KEPT_DIMENSIONS
    if not chosen.any():
        chosen[0] = True
    columns = chosen.nonzero().squeeze(1).to(states.device)
    parts = []
    for start in range(0, len(states), GROUP):
        group = slice(start, start + GROUP)
        before, after = (_near(x[group][:, columns]) for x in (whole_states, states))
        if before is not None and after is not None:
            parts.append(functional.kl_div(after, before, reduction="batchmean", log_target=True))
    if not parts:
        raise UsageError("A scorer is trained on batches of at least three rows.")
    return torch.stack(parts).mean()


def _near(states: Tensor) -> Tensor | None:
    """(row, other row) log of the softmaxed similarities; None for fewer than three rows."""
    rows = len(states)
    if rows < 3:
        return None
    centred = functional.normalize(states - states.mean(0), dim=1)
    similar = SHARPNESS * centred @ centred.T
    others = ~torch.eye(rows, dtype=torch.bool, device=states.device)
    return similar[others].view(rows, rows - 1).log_softmax(1)


def _forever(inputs: Rows, seed: int, steps: int) -> Iterator[dict[str, Any]]:
    """So many batches: rows drawn anew, or the batches that were given, in turn."""
    if isinstance(inputs, EncodedRows):
        random = np.random.default_rng(seed)
        for _ in range(steps):
            rows = random.choice(len(inputs), min(ROWS, len(inputs)), replace=False)
            ((_, batch),) = inputs.take(rows).batches(10**9, ROWS)
            yield batch
        return
    batches = [dict(batch) for batch in inputs]
    if not batches:
        raise UsageError("There is no data: not a single row or batch.")
    for step in range(steps):
        yield batches[step % len(batches)]
