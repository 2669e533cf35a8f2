"""All of it, once: `hc.prune(model, "importance", 0.5, task="sst2", recover=True, out="small")`.

Decides which heads stay, removes the others, recovers or fine-tunes, scores before and after and
beside random cuts of the same size, and writes a folder: model, mask.json, record.json, card; and
gates.npz, the trace of the gates, where a method trains them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from headcount import __version__
from headcount.errors import UsageError
from headcount.files import require_new
from headcount.heads import Layout, Mask
from headcount.learned.trace import Trace
from headcount.pruning.methods import METHODS
from headcount.pruning.select import prepare
from headcount.studies.budget import Budget, together
from headcount.studies.folder import Folder
from headcount.studies.trial import Report, Trial, make_trial
from headcount.tasks import Task, open_task
from headcount.training.evaluate import Evaluation
from headcount.training.loading import tokenizer_of
from headcount.training.options import TrainOptions
from headcount.training.processes import is_first, wait_for_all


@dataclass(frozen=True, eq=False)
class Pruned:
    """A smaller model, which heads it has, and the record of how it came to be."""

    model: PreTrainedModel
    mask: Mask
    record: dict[str, Any]
    trace: Trace | None = None
    """What the gates did, where the method trained them."""


def prune(
    model: PreTrainedModel,
    method: str = "random",
    ratio: float | None = None,
    *,
    task: str | Task | None = None,
    tokenizer: Any = None,
    recover: bool = False,
    finetune: TrainOptions | bool = False,
    learning: TrainOptions | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    baseline: int = 3,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    command: str | None = None,
    report: Report | None = None,
    **settings: Any,
) -> Pruned:
    """Cut a model, repair it if asked, score it, and write it if asked.

    `options` are the method's own (`headcount ls methods`); `baseline` is the number of random
    cuts of the same size, which are repaired in the same way. `learning` is how a method that
    trains gates does so, before the cut; random cuts then train as long after it. `settings` go
    to the trial: inputs, samples, split, limit, max_length, draws, device, fresh. Without a task
    nothing is scored.
    """
    METHODS[method]
    if ratio is not None:
        Layout(()).kept_at(ratio)
    if baseline < 0:
        raise UsageError(f"The number of random cuts is not negative: {baseline}.")
    target = None if out is None else require_new(out) if is_first() else Path(out).expanduser()
    opened = open_task(task) if isinstance(task, str) else task
    if opened is not None and tokenizer is None:
        tokenizer = tokenizer_of(model)
    trains = TrainOptions() if finetune is True else finetune or None
    work = None if target is None else target.parent / f".{target.name}.gates"
    trial = make_trial(
        model, task=opened, tokenizer=tokenizer, recover=recover, finetune=trains,
        learning=learning or TrainOptions(), work=work, **settings,
    )  # fmt: skip
    started = time.monotonic()
    say = report or (lambda text: None)
    say(f"choosing heads: {method}")
    mask = trial.prepare(method, options or {}, seed)(ratio, seed)
    learned = trial.learned.get((mask, seed))
    say(f"removing {len(mask.dropped)} of {len(mask.layout)} heads")
    small, done = trial.cut(mask, seed)
    record = {
        "headcount": __version__,
        "command": command,
        "model": name or model.name_or_path or type(model).__name__,
        "method": method,
        "ratio": ratio,
        "options": {key: str(value) for key, value in (options or {}).items()},
        "seed": seed,
        **_what_was_done(trial, mask, small),
        **done,
        "budget": trial.budget.to_json(),
    }
    if learned is not None:
        # random cuts get after the cut what the gates and weights got before it
        trial = replace(trial, finetune=together(trial.learning or TrainOptions(), trains))
    if opened is not None:
        say("scoring")
        record["scores"] = _scores(trial, mask, small, seed, baseline)
    record["seconds"] = round(time.monotonic() - started, 1)
    trace = None if learned is None else learned.trace
    if target is not None and is_first():
        Folder(target, record).write(small, mask, tokenizer, trace)
    wait_for_all()  # one of several processes may still read what the gates left
    if work is not None and is_first():
        shutil.rmtree(work, ignore_errors=True)
    return Pruned(small, mask, record, trace)


def _what_was_done(trial: Trial, mask: Mask, small: PreTrainedModel) -> dict[str, Any]:
    return {
        "samples": trial.samples,
        "heads": {"before": len(mask.layout), "after": len(mask), "kept": mask.pattern},
        "parameters": {
            "before": trial.model.num_parameters(),
            "after": small.num_parameters(),
        },
        "recover": trial.recover,
        "finetune": None if trial.finetune is None else trial.finetune.to_json(),
    }


def _scores(
    trial: Trial, mask: Mask, small: PreTrainedModel, seed: int, baseline: int
) -> dict[str, Any]:
    """Before, after, and random cuts of the same number of heads, repaired alike."""
    before, after = trial.score_full(), trial.score(small)
    found: dict[str, Any] = {
        "task": before.task,
        "split": before.split,
        "metric": before.scores[0].metric,
        "n": before.n,
        "before": before.to_json(),
        "after": after.to_json(),
        "relative": after.score / before.score if before.score else None,
    }
    if baseline and mask.dropped:
        draw = prepare(trial.layout, "random")
        seeds = [seed + 1 + number for number in range(baseline)]
        masks = [draw(mask.sparsity, each) for each in seeds]
        trial = replace(trial, budget=Budget())
        found["random"] = _summary(trial.score_masks(masks, seeds))
        found["random"]["budget"] = _each(trial.budget, len(masks))
    return found


def _each(budget: Budget, cuts: int) -> dict[str, Any]:
    """What one of so many cuts saw."""
    one = Budget(
        budget.measured // cuts, budget.examples // cuts, budget.steps // cuts, budget.rows
    )
    return one.to_json()


def _summary(found: list[Evaluation]) -> dict[str, Any]:
    values = np.array([each.score for each in found])
    return {
        "draws": len(values),
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)) if len(values) > 1 else None,
        "worst": float(values.min()),
        "best": float(values.max()),
        "scores": values.tolist(),
        "kept": [each.mask.pattern for each in found if each.mask is not None],
    }
