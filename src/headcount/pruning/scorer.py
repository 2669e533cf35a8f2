"""What reads a head's attention map and gives it a score; `meta` trains and uses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import read_json, require_file, whole
from headcount.base.text import short
from headcount.models.capture import AttentionSource

WIDEST = 1024
"""Channels of the widest scorer that is read from a file."""


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


def save_scorer(scorer: Scorer, path: str | Path, about: dict[str, Any] | None = None) -> None:
    """Its weights, and beside them what it is, as JSON; each file whole or not at all."""
    path = Path(path)
    with whole(path) as partial:
        save_file({name: value.cpu() for name, value in scorer.state_dict().items()}, partial)
    with whole(path.with_suffix(".json")) as partial:
        said = {"width": scorer.width, **(about or {})}
        partial.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")


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


def layer_scores(
    scorer: Scorer, maps: dict[AttentionSource, Tensor], asked: dict[str, Any], key: tuple[str, int]
) -> Tensor:
    """(head,) the mean score over rows and, where a layer is shared, over its uses."""
    uses = [place for place in maps if place[:2] == key]
    return torch.stack([mean_scores(scorer, maps[use], asked, use) for use in uses]).mean(0)


def mean_scores(
    scorer: Scorer, attention: Tensor, asked: dict[str, Any], place: AttentionSource
) -> Tensor:
    """(head,) the mean score of a layer's heads over the rows of a batch."""
    rows, heads, queries, keys = attention.shape
    query = _real(asked, "decoder" if place.stack == "cross" else place.stack, rows, queries)
    key = _real(asked, "encoder" if place.stack == "cross" else place.stack, rows, keys)
    each = []
    # row by row without its padding: six times as fast, because a row's maps stay in the cache
    for maps, q, k in zip(attention, query.to(attention), key.to(attention), strict=True):
        q_there, k_there = _between(q), _between(k)
        real = (q[q_there, None] * k[None, k_there]).expand(heads, -1, -1)
        each.append(scorer(maps[:, q_there, k_there], real))
    return torch.stack(each).mean(0)


def _between(real: Tensor) -> slice:
    """From the first token that counts to the last; all where none does."""
    there = real.nonzero()
    return slice(int(there[0]), int(there[-1]) + 1) if len(there) else slice(None)


def _real(asked: dict[str, Any], stack: str, rows: int, length: int) -> Tensor:
    """(row, token) 1 where there is no padding."""
    paired = "decoder_input_ids" in asked
    mask = asked.get(
        "decoder_attention_mask" if paired and stack == "decoder" else "attention_mask"
    )
    if isinstance(mask, Tensor) and mask.shape == (rows, length):
        return mask.float()
    return torch.ones(rows, length)
