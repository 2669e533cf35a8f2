"""Which recovery a model gets: chosen on calibration rows that it is not solved on.

Rows are held back. The model is left as it is, recovered by the options as they stand, and then
with one change after the other; a change stays where the answers to the held-back rows come closer
to the full model's (`fidelity.py`) by more than the standard error of that over rows, and the
pruned model stays as it is where plain recovery is worse by more than that. The best is solved once
more on all rows. So on these rows it is never worse than either by more than the error: what a
repair does to a model differs too much from one to the next to be assumed.

Where few rows are held back, others are in turn (folds), each time with the rest to solve on: three
rows of 21 once took a recovery that halved the divergence for harm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from headcount.base.errors import UsageError
from headcount.models.batches import Batches
from headcount.models.cut import WrittenPath, biases_in, paths_in, settings_of
from headcount.models.find import unwrap
from headcount.models.instructions import set_biases, set_paths
from headcount.models.linear import has_bias
from headcount.repair.fidelity import divergences
from headcount.repair.recover import Recover
from headcount.repair.recovery import ENOUGH, Fit, paired_sites, recover_layers
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.kinds import task_kind

CHANGES: tuple[Callable[[Recover, Recover], dict[str, object]], ...] = (
    lambda _, options: {"linear": options.linear},
    lambda _, options: {"path_rank": options.path_rank},
    lambda *_: {"feed_forward": True},
    lambda *_: {"target": "stream"},
    lambda *_: {"bias": True},
    lambda best, _: {"ridge": best.ridge * 10},
    lambda best, _: {"ridge": best.ridge / 10},
)
"""What is tried on the best so far, in this order; paths where they were asked for."""
CHOSEN = ("ridge", "target", "feed_forward", "bias", "path_rank", "linear", "scales")
"""Options that are chosen."""
LEAST = 1e-3
"""Share of the distance by which a change must be better to stay."""


ROWS, TOKENS = 32, 1024
"""Held-back rows, or tokens where each is predicted, that need no other rows in turn."""


FEW = (
    "There are fewer than 4 rows, so none was held back to choose by, and recovery only scaled the "
    "kept heads: give it more with --calibration-samples or --calibration."
)


@dataclass(frozen=True)
class Trial:
    """One way of recovering, and how far the answers to the held-back rows were then."""

    divergence: float
    options: Recover | None = None
    """None: the pruned model as it is."""

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        chosen = None if self.options is None else _named(self.options)
        return {"options": chosen, "divergence": self.divergence}


@dataclass(frozen=True)
class RecoveryChoice:
    """What was chosen, what else was tried, and how the layers fit."""

    chosen: Trial
    trials: tuple[Trial, ...]
    fits: tuple[Fit, ...]
    held_back: int
    """Rows that were held back; 0 where there were too few to choose by."""
    note: str | None = None

    def to_json(self) -> dict[str, object]:
        """As a record has it."""
        return {
            "layers": [asdict(fit) for fit in self.fits],
            "chosen": self.chosen.to_json(),
            "trials": [trial.to_json() for trial in self.trials],
            "held_back": self.held_back,
        }


def choose(
    small: nn.Module,
    model: nn.Module,
    data: Batches,
    *,
    options: Recover,
    report: Callable[[int, int], None] | None = None,
) -> RecoveryChoice:
    """Recover `small` in place by what does best on held-back rows; `report` gets trials done."""
    small, model = unwrap(small), unwrap(model)
    if isinstance(data, Iterable):
        data = list(data)
    base = replace(options, choose=False, path_rank=0, linear=False)
    folds = _folds(data, options.hold_back)
    if not folds:
        few = replace(base, scales=True, feed_forward=False)
        fits = tuple(recover_layers(small, model, data, options=few))
        trial = Trial(math.nan, few)
        return RecoveryChoice(trial, (trial,), fits, 0, FEW)
    start = _weights(small)
    sites = [site for site, _ in paired_sites(small, model)]
    lacking = [s.out for s in sites if not has_bias(small.get_submodule(s.out))]
    emptied = any(not site.heads for site in sites)

    def distances() -> Tensor:
        return torch.cat([divergences(small, model, held) for _, held in folds])

    nearest = distances()
    trials = [Trial(_mean(nearest))]
    if not math.isfinite(trials[0].divergence):
        raise UsageError("The answers to the rows that were held back are not all numbers (NaN).")
    best, kept, fits = trials[0], start, ()

    def attempt(way: Recover) -> tuple[Fit, ...]:
        nonlocal best, kept, fits, nearest
        parts, solved = [], ()
        for learnt, held in folds:
            _restore(small, start)
            solved = tuple(recover_layers(small, model, learnt, options=way))
            parts.append(divergences(small, model, held))
        measured = torch.cat(parts)
        trials.append(Trial(_mean(measured), way))
        if report is not None:
            report(len(trials), len(CHANGES) + 3)
        error = _error(nearest, measured)
        # plain recovery, which will have more rows to be solved on, goes where it is surely worse
        margin = -error if way == base else max(LEAST * best.divergence, error)
        if trials[-1].divergence < best.divergence - margin:
            best, kept, fits, nearest = trials[-1], _weights(small), solved, measured
        return solved

    note = _enough(attempt(base))
    if note is not None or best.options is None:
        attempt(replace(base, scales=True, feed_forward=False))
    for change in CHANGES:
        way = best.options or base
        if way.scales:
            break
        changed = replace(way, **change(way, options))
        useless = (changed.bias and not lacking) or (changed.linear and not emptied)
        if changed not in [trial.options for trial in trials] and not useless:
            attempt(changed)
    _restore(small, kept)
    if best.options is not None:
        _restore(small, start)
        again = recover_layers(small, model, data, options=best.options)
        # what was solved on these rows as well is nearer to them, unless the solution is unstable
        if _mean(distances()) <= best.divergence:
            fits = tuple(again)
        else:
            _restore(small, kept)
    return RecoveryChoice(best, tuple(trials), fits, len(nearest), _enough(fits) or note)


def _mean(sums: Tensor) -> float:  # (row, sum and weight)
    total, weight = sums.sum(0).tolist()
    if not weight:
        raise UsageError("No token of the held-back rows counts, so answers cannot be compared.")
    return max(total / weight, 0.0)


def _error(one: Tensor, other: Tensor) -> float:
    """The standard error, over rows, of the difference between two means of the same rows."""
    total, weight = one[:, 0] - other[:, 0], one[:, 1]
    left = total - weight * (total.sum() / weight.sum())
    rows = len(left)
    return float((left.square().sum() * rows / max(rows - 1, 1)).sqrt() / weight.sum())


def _named(options: Recover) -> dict[str, object]:
    return {name: getattr(options, name) for name in CHOSEN}


def _enough(fits: tuple[Fit, ...]) -> str | None:
    """How many tokens would do, where there were fewer than what was solved needs."""
    short = [fit for fit in fits if fit.tokens < ENOUGH * fit.unknowns]
    if not short:
        return None
    most = max(short, key=lambda fit: fit.unknowns)
    return (
        f"Recovery had {most.tokens:,} tokens for {most.unknowns:,} unknowns in {most.stack} layer "
        f"{most.layer} and was chosen on rows that were held back; with "
        f"{ENOUGH * most.unknowns:,} or more it can do better: --calibration-tokens or "
        "--calibration."
    )


def _folds(data: Batches, share: float) -> list[tuple[Batches, Batches]]:
    """Rows to solve on and rows to choose by, as often as makes those enough; none for fewer than
    four rows."""
    if isinstance(data, EncodedRows):
        rows = data.count
    else:
        assert isinstance(data, list)
        rows = sum(map(_rows, data))
    if rows < 4:
        return []
    number = min(max(1, round(rows * share)), rows - 1)
    folds = -(-ROWS // number)
    if isinstance(data, EncodedRows) and data.kind and task_kind(data.kind).asks_tokens:
        folds = min(folds, math.ceil(TOKENS * rows / number / max(int(data.sizes.sum()), 1)))
    folds = max(1, min(folds, rows // number))
    spread = np.arange(number)[None] + (np.arange(folds)[:, None] + 0.5) / folds
    return [_split(data, held) for held in (spread * rows / number).astype(int)]


def _split(data: Batches, held: np.ndarray) -> tuple[Batches, Batches]:
    """The other rows, and these."""
    if isinstance(data, EncodedRows):
        return data.take(np.delete(np.arange(data.count), held)), data.take(held)
    assert isinstance(data, list)
    rows = [_rows(batch) for batch in data]
    where = np.isin(np.arange(sum(rows)), held)
    parts = np.split(where, np.cumsum(rows)[:-1])
    learnt = [
        _take(batch, ~part) for batch, part in zip(data, parts, strict=True) if not part.all()
    ]
    chosen = [_take(batch, part) for batch, part in zip(data, parts, strict=True) if part.any()]
    return learnt, chosen


def _rows(batch: Mapping[str, object]) -> int:
    return max(len(value) for value in batch.values() if isinstance(value, Tensor) and value.ndim)


def _take(batch: Mapping[str, object], which: np.ndarray) -> dict[str, object]:
    """These rows of a batch; what has one entry for all of them stays."""
    chosen = torch.from_numpy(np.flatnonzero(which))
    return {
        name: value[chosen.to(value.device)]
        if isinstance(value, Tensor) and value.ndim and len(value) == len(which)
        else value
        for name, value in batch.items()
    }


Weights = tuple[list[str], list[WrittenPath], dict[str, Tensor]]
"""The projections that got a bias, the linear paths, and all parameters."""


def _weights(model: nn.Module) -> Weights:
    parameters = {name: value.detach().clone() for name, value in model.named_parameters()}
    return biases_in(settings_of(model)), paths_in(settings_of(model)), parameters


def _restore(model: nn.Module, weights: Weights) -> None:
    biases, paths, parameters = weights
    if biases != biases_in(settings_of(model)):
        set_biases(model, biases)
    if paths != paths_in(settings_of(model)):
        set_paths(model, paths)
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(parameters[name])
