"""One number of learned gates varied, all else the same: sparsity and score (C7; Figs 6, 7).

    found = sweep(model, "cola", "mu", [1e-4, 1e-3, 1e-2], seeds=3, out="sweep")

Every value and seed is one training of gates and weights with free sparsity: no ratio is asked
for, so the value decides how many heads stay. Finished runs are kept in the folder, and the same
call again, or one with more values or seeds, computes only what is missing.

A run in which all gates close has no heads to give. It is a point of the sweep all the same: its
sparsity is 1, and its score that of the model at that moment with all heads removed, that is with
the weights of the step in which the last gate closed. Training stopped there, so it had fewer
steps than the others and none to settle in; its record says when, and which heads were open last.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from headcount.errors import UsageError
from headcount.heads import Mask
from headcount.learned.keeper import AllClosedError
from headcount.names import did_you_mean
from headcount.options import types_of
from headcount.pruning.methods import METHODS, make_method, needs_of
from headcount.statistics import interval, rank_correlation
from headcount.studies.compare import Run, run_once
from headcount.studies.identity import identity
from headcount.studies.notes import Note, log
from headcount.studies.points import (
    ends,
    loss_columns,
    loss_of,
    relative,
    write_parquet,
)
from headcount.studies.store import WORK, Store, held
from headcount.studies.trial import Trial, make_trial
from headcount.tasks import Task, open_task
from headcount.tasks.loading import tokenizer_of
from headcount.training.evaluate import Evaluation
from headcount.training.options import TrainOptions

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class SweepRun(Run):
    """One value with one seed: gates and weights trained, closed heads removed, scored."""

    value: float
    sparsity: float
    """Share of heads that went."""
    all_closed: dict[str, Any] | None = None
    """Where all gates closed: the step, which heads were open last, and what was scored."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Swept:
    """All runs, and the model they started from."""

    about: Mapping[str, Any]
    full: dict[str, Any]
    """The model with all its heads, as it was given."""
    runs: list[SweepRun]

    def summary(self) -> list[dict[str, Any]]:
        """For each value sparsity and score: mean with its interval, and ends, over seeds."""
        rows = []
        for value in dict.fromkeys(run.value for run in self.runs):
            own = [run for run in self.runs if run.value == value]
            metric = str(self.about["metric"])
            score = _spread([run.score for run in own]) | ends([run.score for run in own], metric)
            rows.append({
                "value": value,
                "seeds": len(own),
                "kept": float(np.mean([run.kept for run in own])),
                "sparsity": _spread([run.sparsity for run in own]),
                "score": score,
                "relative": relative(score["mean"], self.full["score"]),
                **loss_of(own, self.full["score"], metric),
                "all_closed": sum(run.all_closed is not None for run in own),
            })  # fmt: skip
        return rows

    def trends(self) -> dict[str, dict[str, float]]:
        """Spearman's rank correlation of the value with sparsity and with score, over all runs."""
        values = [run.value for run in self.runs]
        return {
            "sparsity": rank_correlation(values, [run.sparsity for run in self.runs]),
            "score": rank_correlation(values, [run.score for run in self.runs]),
        }

    def to_json(self) -> dict[str, Any]:
        """A plain dict: what was asked, the summary, the trends, and all runs."""
        return {
            "about": dict(self.about),
            "full": self.full,
            "summary": self.summary(),
            "trends": self.trends(),
            "runs": [asdict(run) for run in self.runs],
        }

    def save_parquet(self, path: Path) -> None:
        """All runs as one flat table."""
        names = ("value", "seed", "kept", "pattern", "sparsity", "score", "low", "high", "n")
        rows = [
            {name: getattr(run, name) for name in names}
            | {"all_closed": run.all_closed is not None, "steps": run.budget["steps"]}
            for run in self.runs
        ]
        write_parquet(rows, self.full["score"], path)


def sweep(
    model: PreTrainedModel,
    task: str | Task,
    over: str,
    values: Sequence[float],
    *,
    method: str = "straight-through",
    seeds: int = 3,
    train: TrainOptions | None = None,
    out: str | Path | None = None,
    tokenizer: Any = None,
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    note: Note = log,
    **settings: Any,
) -> Swept:
    """Train the method's gates with every value of the option `over`, `seeds` times each.

    `options` are the method's other ones; `settings` go to the trial: split, limit, max_length,
    draws, seed (of what is scored), device. `note` is called with what must not be missed.
    """
    options = options or {}
    check_sweep(method, over, values, seeds, options)
    for value in values:
        if make_method(method, {**options, over: float(value)}).ratio == "needed":
            raise UsageError(
                f"The method '{method}' keeps exactly as many heads as it is asked for, so there "
                "is no sparsity to sweep: use straight-through or hard-concrete."
            )
    opened = open_task(task) if isinstance(task, str) else task
    tokenizer = tokenizer if tokenizer is not None else tokenizer_of(model)
    trial = make_trial(
        model, task=opened, tokenizer=tokenizer, finetune=train or TrainOptions(), note=note,
        **settings,
    )  # fmt: skip
    asked = {"method": method, "over": over, "train": (train or TrainOptions()).identity()}
    about = identity(trial, {method: options}, **asked)
    trial.tell_seen(())
    folder = None if out is None else Path(out).expanduser()
    numbers, done = [float(value) for value in values], 0
    with held(folder):
        how = {"overwrite": overwrite, "note": note}
        store = Store(SweepRun, lambda run: (run.value, run.seed), folder, about, **how)
        full = trial.score(model)
        for seed in range(seeds):
            # seed by seed, so that a sweep that is stopped is even
            for value in numbers:
                if (value, seed) not in store.done:
                    own = {**options, over: value}
                    store.add(_one(trial, method, own, over, seed, folder, full))
                done += 1
                if progress is not None:
                    progress(done, len(numbers) * seeds)
        if folder is not None:
            shutil.rmtree(folder / WORK, ignore_errors=True)
    runs = [store.done[value, seed] for value in numbers for seed in range(seeds)]
    return Swept(about=about, full=full.to_json(), runs=runs)


def check_sweep(
    method: str, over: str, values: Sequence[float], seeds: int, options: Mapping[str, Any]
) -> None:
    """Refuse a sweep that says nothing, before anything is loaded."""
    numeric = numeric_options(method)
    if over not in numeric:
        raise UsageError(
            f"'{over}' is no number of the method '{method}'.{did_you_mean(over, numeric)} "
            f"Numbers to sweep over: {', '.join(numeric)}."
        )
    if over in options:
        raise UsageError(f"'{over}' is swept over, so it cannot also be set to {options[over]}.")
    if wrong := [value for value in values if not math.isfinite(value)]:
        raise UsageError(f"{wrong[0]} is no value of '{over}' to sweep over.")
    if twice := [value for at, value in enumerate(values) if value in values[:at]]:
        raise UsageError(f"The value {twice[0]:g} of '{over}' is named twice.")
    if len(values) < 2:
        raise UsageError(f"A sweep needs at least two values of '{over}', not {len(values)}.")
    if seeds < 1:
        raise UsageError(f"A sweep needs at least one seed, not {seeds}.")


def numeric_options(method: str) -> list[str]:
    """What can be swept over: the numbers among the options of a method that trains gates."""
    if needs_of(method) != "training":
        raise UsageError(
            f"The method '{method}' trains no gates, so there is nothing to sweep over: use "
            "straight-through or hard-concrete."
        )
    kind: Any = METHODS[method]
    return [name for name, wanted in types_of(kind).items() if wanted is float]


def _spread(values: Sequence[float]) -> dict[str, float]:
    mean, low, high = interval(values)
    return {"mean": mean, "low": low, "high": high, "worst": min(values), "best": max(values)}


def _one(
    trial: Trial,
    method: str,
    options: Mapping[str, Any],
    over: str,
    seed: int,
    folder: Path | None,
    full: Evaluation,
) -> SweepRun:
    """One training with its cut and score, or what is left when all gates close."""
    value: float = options[over]
    started = time.monotonic()
    # every value has its own: what one left unfinished is not what another goes on with
    work = None if folder is None else folder / WORK / f"{value!r}"
    try:
        run = run_once(trial, method, None, seed, options, work, full)
    except AllClosedError as error:
        found = _closed(trial, error, method, seed, full)
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)
        return replace(found, value=value, seconds=round(time.monotonic() - started, 1))
    sparsity = 1 - run.kept / len(trial.layout)
    return SweepRun(**asdict(run), value=value, sparsity=sparsity)


def _closed(
    trial: Trial, error: AllClosedError, method: str, seed: int, full: Evaluation
) -> SweepRun:
    """The point of a run in which all gates closed: no heads, the weights of that moment."""
    assert error.model is not None
    nothing = Mask(trial.layout, frozenset())
    as_it_was = replace(trial, model=error.model, finetune=None)
    found = as_it_was.score_masks([nothing], [seed])[0]
    return SweepRun(
        method=method, seed=seed, kept=0, pattern=nothing.pattern, score=found.score,
        low=found.scores[0].low, high=found.scores[0].high, n=found.n,
        budget={"steps": error.step}, learned=None, seconds=0.0, value=math.nan, sparsity=1.0,
        **loss_columns(trial.difference(full, found)),
        all_closed={
            "step": error.step,
            "last_open": error.mask.pattern,
            "last_open_kept": len(error.mask),
            "scored": "all heads removed, the weights as they were at that step",
        },
    )  # fmt: skip
