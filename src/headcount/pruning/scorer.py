"""What reads a head's attention map and gives it a score, trained once without labels.

`meta.py` says what it is for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import read_json, require_file, whole
from headcount.base.text import short
from headcount.heads import Layout, Scores
from headcount.models.batches import batches_for
from headcount.models.capture import AttentionSource, capture
from headcount.models.find import layout as layout_of_model
from headcount.models.find import unwrap
from headcount.models.gates import gate
from headcount.models.hooks import evaluating
from headcount.pruning.topk import draw_top
from headcount.sensitivity.gradients import frozen
from headcount.tasks.as_rows import Rows
from headcount.tasks.encoding import EncodedRows

WIDEST = 1024
"""Channels of the widest scorer that is read from a file."""
ROWS, GROUP = 16, 8
"""Rows of a training step, and of the groups in which they are compared."""
KEPT_DIMENSIONS = 0.2
SHARPNESS = 10.0
Inputs = dict[str, Any]
"""A batch as the model's forward takes it."""


class Scorer(nn.Module):
    """One attention map -> one score."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.width = width
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.second = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.last = nn.Linear(2 * width, 1)

    def forward(self, maps: Tensor, real: Tensor) -> Tensor:  # (map, query, key) twice -> (map,)
        """Scores of maps; `real` is 1 where neither query nor key is padding."""
        # even attention over n keys is 1/n everywhere: times n, its map is 1, however long
        keys = real.amax(1).sum(1)[:, None, None]
        x = functional.relu(self.first((maps * real * keys)[:, None])) * real[:, None]
        x = functional.relu(self.second(x)) * real[:, None]
        pooled = x.sum((2, 3)) / real.sum((1, 2)).clamp_min(1)[:, None]
        return self.last(pooled).squeeze(-1)


def save_scorer(
    scorer: Scorer, path: str | Path, about: Mapping[str, object] | None = None
) -> None:
    """Its weights, and beside them what it is, as JSON; each file whole or not at all."""
    path = Path(path)
    with whole(path) as partial:
        save_file({name: value.cpu() for name, value in scorer.state_dict().items()}, partial)
    with whole(path.with_suffix(".json")) as partial:
        text = json.dumps({"width": scorer.width, **(about or {})}, indent=2)
        partial.write_text(text + "\n", encoding="utf-8")


def load_scorer(path: str | Path) -> Scorer:
    """The scorer that `save_scorer` wrote."""
    path = Path(path)
    try:
        width = read_json(path.with_suffix(".json"), "description of a scorer")["width"]
        if type(width) is not int or not 1 <= width <= WIDEST:
            raise UsageError(f"A scorer is 1 to {WIDEST} wide, not {short(width)}.")
        scorer = Scorer(width)
        require_file(path, "scorer")
        scorer.load_state_dict(load_file(path))
    except (OSError, NotFoundError) as error:
        raise NotFoundError(f"There is no scorer at {path} with its .json beside it.") from error
    except Exception as error:
        reason = f" {error}" if isinstance(error, UsageError) else ""
        raise UsageError(f"{path} is not a scorer of attention maps.{reason}") from error
    return scorer.eval()


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
        for batch in _batches(inputs, seed, steps):
            batch_inputs = next(batches_for(base, [batch])).inputs
            maps, whole_states = _capture(base, batch_inputs)
            thinned = _thinned(layout, generator)
            scores = {key: layer_scores(scorer, maps, batch_inputs, key) for key in thinned}
            with gate(base, _drawn(layout, scores, generator)):
                states = _states(base, batch_inputs)
            loss = _divergence(whole_states, states, generator)
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
        for batch in batches_for(base, inputs):
            maps, _ = _capture(base, batch.inputs)
            count = len(next(iter(maps.values())))
            rows += count
            for source, attention in maps.items():
                key = source[:2]
                sums[key] += count * mean_scores(scorer, attention, batch.inputs, source).cpu()
                uses[key] = max(uses[key], source.use + 1)
    values = [v for key in sums for v in (sums[key] / max(1, rows * uses[key])).tolist()]
    return Scores(layout, tuple(values))


def layer_scores(
    scorer: Scorer, maps: dict[AttentionSource, Tensor], inputs: Inputs, key: tuple[str, int]
) -> Tensor:
    """(head,) the mean score over rows and, where a layer is shared, over its uses."""
    uses = [source for source in maps if source[:2] == key]
    return torch.stack([mean_scores(scorer, maps[use], inputs, use) for use in uses]).mean(0)


def mean_scores(
    scorer: Scorer, attention: Tensor, inputs: Inputs, source: AttentionSource
) -> Tensor:
    """(head,) the mean score of a layer's heads over the rows of a batch."""
    rows, heads, queries, keys = attention.shape
    crossed = source.stack == "cross"
    query = _real(inputs, "decoder" if crossed else source.stack, rows, queries)
    key = _real(inputs, "encoder" if crossed else source.stack, rows, keys)
    scores = []
    # row by row without its padding: six times as fast, because a row's maps stay in the cache
    for maps, q, k in zip(attention, query.to(attention), key.to(attention), strict=True):
        q_part, k_part = _between(q), _between(k)
        real = (q[q_part, None] * k[None, k_part]).expand(heads, -1, -1)
        scores.append(scorer(maps[:, q_part, k_part], real))
    return torch.stack(scores).mean(0)


def _between(real: Tensor) -> slice:
    """From the first token that counts to the last; all where none does."""
    counted = real.nonzero()
    return slice(int(counted[0]), int(counted[-1]) + 1) if len(counted) else slice(None)


def _real(inputs: Inputs, stack: str, rows: int, length: int) -> Tensor:
    """(row, token) 1 where there is no padding."""
    paired = "decoder_input_ids" in inputs and stack == "decoder"
    mask = inputs.get("decoder_attention_mask" if paired else "attention_mask")
    if isinstance(mask, Tensor) and mask.shape == (rows, length):
        return mask.float()
    return torch.ones(rows, length)


def _base(model: nn.Module) -> nn.Module:
    """The model without its task head: its last states are the representation."""
    bare = unwrap(model)
    return getattr(bare, "base_model", bare)


def _states(base: nn.Module, inputs: Inputs) -> Tensor:
    """(row, dimension) the mean of the last states over tokens that count."""
    states = base(**inputs).last_hidden_state
    decoder = "decoder_input_ids" in inputs
    mask = inputs.get("decoder_attention_mask" if decoder else "attention_mask")
    if mask is None or mask.shape != states.shape[:2]:
        return states.mean(1)
    real = mask[:, :, None].to(states.dtype)
    return (states * real).sum(1) / real.sum(1).clamp_min(1)


def _capture(base: nn.Module, inputs: Inputs) -> tuple[dict[AttentionSource, Tensor], Tensor]:
    """Every layer's attention, and the representation, with all heads."""
    maps: dict[AttentionSource, Tensor] = {}
    with torch.no_grad(), capture(base, maps.__setitem__):
        states = _states(base, inputs)
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
        values = scores.get((stack, layer))
        if values is None or not heads:
            gates[stack].append(torch.ones(heads))
        else:
            gates[stack].append(draw_top(values.cpu(), -(-heads // 2), generator))
    return gates


def _divergence(whole_states: Tensor, states: Tensor, generator: torch.Generator) -> Tensor:
    """How far pairwise similarities moved: the mean KL divergence over rows."""
    chosen = torch.rand(states.shape[1], generator=generator) < KEPT_DIMENSIONS
    if not chosen.any():
        chosen[0] = True
    columns = chosen.nonzero().squeeze(1).to(states.device)
    parts = []
    for start in range(0, len(states), GROUP):
        group = slice(start, start + GROUP)
        before, after = (_similarities(x[group][:, columns]) for x in (whole_states, states))
        if before is not None and after is not None:
            parts.append(functional.kl_div(after, before, reduction="batchmean", log_target=True))
    if not parts:
        raise UsageError("A scorer is trained on batches of at least three rows.")
    return torch.stack(parts).mean()


def _similarities(states: Tensor) -> Tensor | None:
    """(row, other row) log of the softmaxed similarities; None for fewer than three rows."""
    rows = len(states)
    if rows < 3:
        return None
    centred = functional.normalize(states - states.mean(0), dim=1)
    similar = SHARPNESS * centred @ centred.T
    others = ~torch.eye(rows, dtype=torch.bool, device=states.device)
    return similar[others].view(rows, rows - 1).log_softmax(1)


def _batches(inputs: Rows, seed: int, steps: int) -> Iterator[Inputs]:
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
