"""All of it, once: `hc.prune(model, ratio=0.5, task="sst2", out="small")`.

Decides which heads stay, removes the others, recovers or fine-tunes, scores before and after and
beside random cuts of the same size, and writes a folder: model, mask.json, record.json, card; and
gates.npz, the trace of the gates, where a method trains them. A call that was killed goes on where
it was when it is made again; one that was finished gives what it wrote.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from headcount import __version__
from headcount.errors import UsageError
from headcount.heads import Mask
from headcount.learned.trace import Trace
from headcount.models.fingerprint import versions
from headcount.pruning.methods import METHODS, needs_of
from headcount.pruning.select import prepare
from headcount.studies.advice import Ratio, choose, read_ratio
from headcount.studies.budget import Budget, together
from headcount.studies.folder import Folder, finished, require_free, work_of, workspace
from headcount.studies.identity import identity
from headcount.studies.notes import Note, log, not_better, rows_sentence, seen_rows
from headcount.studies.points import defined, ends
from headcount.studies.trial import Report, Trial, make_trial
from headcount.tasks import Task, open_task
from headcount.tasks.loading import tokenizer_of
from headcount.training.evaluate import Evaluation
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
    method: str | None = None,
    ratio: Ratio = None,
    *,
    task: str | Task | None = None,
    tokenizer: Any = None,
    recover: bool | None = None,
    finetune: TrainOptions | bool = False,
    learning: TrainOptions | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    baseline: int = 3,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    command: str | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    note: Note = log,
    **settings: Any,
) -> Pruned:
    """Cut a model, repair it if asked, score it, and write it if asked.

    Without a `method` it is "surgeon" with recovery where there is a task, and "cluster" where
    there is none. `ratio` is the share of heads to remove; "free" lets a method that can decide.
    `options` are the method's own (`headcount ls methods`); `baseline` is the number of random
    cuts of the same size, which are repaired in the same way. `learning` is how a method that
    trains gates does so, before the cut; random cuts then train as long after it. `seed` is that
    of the cut, of its training, and of the sample that is scored. `overwrite` replaces a pruned
    model in `out`. `note` is called with what must not be missed, which is also in the record.
    `settings` go to the trial: inputs, samples, split, limit, max_length, draws, device, fresh.
    Without a task nothing is scored.
    """
    opened = open_task(task) if isinstance(task, str) else task
    fresh = bool(settings.get("fresh"))
    choice = choose(method, recover, task=opened is not None, fresh=fresh)
    METHODS[choice.method]
    own = dict(options or {})
    share = read_ratio(choice.method, ratio, own)
    if baseline < 0:
        raise UsageError(f"The number of random cuts is not negative: {baseline}.")
    target = None if out is None else Path(out).expanduser()
    if target is not None and is_first():
        require_free(target)
    if opened is not None and tokenizer is None:
        tokenizer = tokenizer_of(model)
    trains = TrainOptions() if finetune is True else finetune or None
    notes: list[str] = []

    def tell(text: str | None) -> None:
        if text is not None:
            notes.append(text)
            note(text)

    trial = make_trial(
        model, task=opened, tokenizer=tokenizer, recover=choice.recover, finetune=trains,
        learning=learning or TrainOptions(), seed=seed, note=tell,
        work=None if target is None else work_of(target), **settings,
    )  # fmt: skip
    asked = {
        "method": choice.method,
        "ratio": ratio,
        "baseline": baseline,
        "finetune": None if trains is None else trains.identity(),
        "seed": seed,
    }
    if needs_of(choice.method) == "training":
        asked["learning"] = (learning or TrainOptions()).identity()
    tell(choice.note)
    cut = _Cut(trial, asked, own, report or (lambda text: None), notes)
    if target is None:
        return cut.make(share, {"command": command, "model": name})
    about = identity(trial, {choice.method: own}, **asked)
    if not overwrite and (there := finished(target, about, note)) is not None:
        return Pruned(*there)
    with workspace(target, about, note, overwrite=overwrite) if is_first() else nullcontext():
        found = cut.make(share, {"command": command, "model": name, "identity": about})
        if is_first():
            Folder(target, found.record).write(found.model, found.mask, tokenizer, found.trace)
        wait_for_all()  # one of several processes may still read what the gates left
    return found


@dataclass(frozen=True)
class _Cut:
    """One cut under way."""

    trial: Trial
    asked: Mapping[str, Any]
    options: Mapping[str, Any]
    say: Report
    notes: list[str]

    def make(self, share: float | None, more: Mapping[str, Any]) -> Pruned:
        """Decide, remove, repair and score."""
        trial, seed, method = self.trial, self.asked["seed"], self.asked["method"]
        started = time.monotonic()
        self.say(f"choosing heads: {method}")
        decision = trial.prepare(method, self.options, seed)(share, seed)
        mask, learned = decision.mask, decision.learned
        self.say(f"removing {len(mask.dropped)} of {len(mask.layout)} heads")
        small, done = trial.cut(decision, seed)
        record = {
            "headcount": __version__,
            "versions": versions(),
            "command": more["command"],
            "model": more["model"] or trial.model.name_or_path or type(trial.model).__name__,
            "method": method,
            "ratio": self.asked["ratio"],
            "options": {key: str(value) for key, value in self.options.items()},
            "seed": seed,
            **_what_was_done(trial, mask, small),
            **done,
            "budget": trial.budget.to_json(),
            "rows": dict(trial.used),
            "mask": mask.to_json(),
        }
        if learned is not None:
            # random cuts get after the cut what the gates and weights got before it
            longer = together(trial.learning or TrainOptions(), trial.finetune)
            trial = replace(trial, finetune=longer)
        if trial.task is not None:
            self.say("scoring")
            record["scores"] = self._scores(trial, mask, small)
            scored = record["scores"]["before"]
            record["rows"]["scored"] = {
                "split": scored["split"],
                "n": scored["n"],
                "seed": None if trial.limit is None else trial.seed,
                "fingerprint": scored["rows"],
            }
            if told := seen_rows(record["rows"]):
                trial.note(told)
        record["rows_said"] = rows_sentence(record["rows"])
        record["notes"] = self.notes
        record["seconds"] = round(time.monotonic() - started, 1)
        record |= {name: value for name, value in more.items() if name == "identity"}
        return Pruned(small, mask, defined(record), None if learned is None else learned.trace)

    def _scores(self, trial: Trial, mask: Mask, small: PreTrainedModel) -> dict[str, Any]:
        """Before, after, and random cuts of the same number of heads, repaired alike."""
        seed, baseline = self.asked["seed"], self.asked["baseline"]
        before, after = trial.score_full(), trial.score(small)
        metric, loss = before.scores[0].metric, trial.difference(before, after)
        found: dict[str, Any] = {
            "task": before.task,
            "split": before.split,
            "metric": metric,
            "n": before.n,
            "before": before.to_json(),
            "after": after.to_json(),
            "relative": after.score / before.score if before.score else None,
            "difference": loss.to_json(),
            "lost": str(loss),
        }
        if baseline and mask.dropped:
            draw = prepare(trial.layout, "random")
            seeds = [seed + 1 + number for number in range(baseline)]
            masks = [draw(mask.sparsity, each) for each in seeds]
            trial = replace(trial, budget=Budget(), used={})
            random = trial.score_masks(masks, seeds)
            found["random"] = _summary(random, metric)
            found["random"]["budget"] = _each(trial.budget, len(masks))
            if self.asked["method"] != "random":
                told = not_better(after.score, [each.score for each in random], metric)
                found["random"]["beaten"] = told is None
                if told is not None:
                    trial.note(told)
        return found


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


def _each(budget: Budget, cuts: int) -> dict[str, Any]:
    """What one of so many cuts saw."""
    one = Budget(
        budget.measured // cuts, budget.examples // cuts, budget.steps // cuts, budget.rows
    )
    return one.to_json()


def _summary(found: list[Evaluation], metric: str) -> dict[str, Any]:
    values = np.array([each.score for each in found])
    return {
        "draws": len(values),
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)) if len(values) > 1 else None,
        **ends(values.tolist(), metric),
        "scores": values.tolist(),
        "kept": [each.mask.pattern for each in found if each.mask is not None],
    }
