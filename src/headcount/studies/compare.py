"""Methods at equal sparsity and equal training, over seeds (C2, Table 1).

    found = compare(model, "mrpc", ratio=0.5, seeds=5, train=TrainOptions(epochs=3), out="compare")

Every method ends with the same number of heads and has one training with the same options: after
the cut, or, where it trains gates, together with them. "all-heads" is that training without a cut;
a name that ends in "+recover" is the method with its output projections solved again between cut
and training. Every seed is a draw or a sample of rows, and the seed of the training; methods are
compared with random cuts seed by seed. Finished runs are kept in the folder, so the same call again
computes only what is missing.
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
from headcount.heads import Layout, Mask
from headcount.pruning.methods import METHODS, Decision, needs_of
from headcount.statistics import interval, paired
from headcount.studies.budget import Budget
from headcount.studies.identity import identity
from headcount.studies.notes import Note, log
from headcount.studies.points import ends, loss_columns, loss_of, versus_random
from headcount.studies.store import WORK, Store, held
from headcount.studies.trial import Trial, make_trial
from headcount.tasks import Task, open_task
from headcount.tasks.loading import tokenizer_of
from headcount.training.evaluate import Evaluation
from headcount.training.options import TrainOptions

ALL = "all-heads"
"""Stands for no cut: the given model with the same training."""
RECOVER = "+recover"
"""After a method's name: recovery between its cut and its training."""
COMPARED = (
    ALL,
    "random",
    "importance",
    "hard-concrete",
    "meta",
    "subset",
    "cluster",
    "straight-through",
    "surgeon+recover",
)
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Run:
    """One method with one seed: cut, trained, scored."""

    method: str
    seed: int
    kept: int
    pattern: str
    score: float
    low: float
    high: float
    n: int
    budget: dict[str, Any]
    """Epochs, rows and steps of training, and rows looked at without."""
    learned: dict[str, Any] | None
    """How gates came to their number, their gap and what reopened, where they were trained."""
    seconds: float
    difference: float = math.nan
    """From the model as it was given, on the same rows; below with the 95 % interval of its own."""
    difference_low: float = math.nan
    difference_high: float = math.nan


@dataclass(frozen=True, kw_only=True, eq=False)
class Compared:
    """All runs, and the model they started from."""

    about: Mapping[str, Any]
    full: dict[str, Any]
    """The model with all its heads, as it was given."""
    runs: list[Run]

    def summary(self) -> list[dict[str, Any]]:
        """For each method: mean over seeds with its interval, and the differences.

        `against_random` and `against_all_heads` are paired by seed: from random cuts, and from the
        same training without a cut. `difference` is from the model as it was given.
        """
        scores = {
            method: {run.seed: run.score for run in self.runs if run.method == method}
            for method in dict.fromkeys(run.method for run in self.runs)
        }
        rows = []
        for method, own in scores.items():
            mean, low, high = interval(list(own.values()))
            first = next(run for run in self.runs if run.method == method)
            row: dict[str, Any] = {
                "method": method, "seeds": len(own), "kept": first.kept, "mean": mean,
                "low": low, "high": high, **ends([*own.values()], self.metric),
                "budget": first.budget, "gap": self._gap(method),
                **self._lost(method),
            }  # fmt: skip
            if method != ALL and ALL in scores:
                row["against_all_heads"] = paired(own, scores[ALL])
            if method != "random" and "random" in scores:
                row |= versus_random(own, scores["random"], self.metric)
            rows.append(row)
        return rows

    @property
    def metric(self) -> str:
        """What is scored."""
        return str(self.about["metric"])

    def _lost(self, method: str) -> dict[str, Any]:
        """From the model as it was given."""
        own = [run for run in self.runs if run.method == method]
        return loss_of(own, self.full["score"], self.metric)

    def _gap(self, method: str) -> float | None:
        """Mean gap between training and test gates, where it was measured."""
        gaps = [(run.learned or {}).get("gap") for run in self.runs if run.method == method]
        values = [gap["gap"] for gap in gaps if gap]
        return float(np.mean(values)) if values else None

    def to_json(self) -> dict[str, Any]:
        """A plain dict: what was asked, the summary, and all runs."""
        return {
            "about": dict(self.about),
            "full": self.full,
            "summary": self.summary(),
            "runs": [asdict(run) for run in self.runs],
        }


def compare(
    model: PreTrainedModel,
    task: str | Task,
    methods: Sequence[str] = COMPARED,
    *,
    ratio: float = 0.5,
    seeds: int = 5,
    train: TrainOptions | None = None,
    out: str | Path | None = None,
    tokenizer: Any = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    note: Note = log,
    **settings: Any,
) -> Compared:
    """Cut by every method with every seed, train each alike, score, and compare with random.

    `options` are by method; `settings` go to the trial: inputs, samples, split, limit, max_length,
    draws, seed (of what is scored), device. `note` is called with what must not be missed.
    """
    options = options or {}
    _check(methods, ratio, seeds, options)
    opened = open_task(task) if isinstance(task, str) else task
    tokenizer = tokenizer if tokenizer is not None else tokenizer_of(model)
    trial = make_trial(
        model, task=opened, tokenizer=tokenizer, finetune=train or TrainOptions(), note=note,
        **settings,
    )  # fmt: skip
    for name in methods:
        if name != ALL and needs_of(method_of(name)) in ("nothing", "training"):
            own = replace(trial, recover=name.endswith(RECOVER))
            own.prepare(method_of(name), options.get(method_of(name), {}), 0)  # told first if wrong
    about = identity(trial, options, ratio=ratio, train=(train or TrainOptions()).identity())
    trial.tell_seen(())
    folder = None if out is None else Path(out).expanduser()
    total, done = len(methods) * seeds, 0
    with held(folder):
        how = {"overwrite": overwrite, "note": note}
        store = Store(Run, lambda run: (run.method, run.seed), folder, about, **how)
        full = trial.score(model)
        for seed in range(seeds):
            # seed by seed, so that a comparison that is stopped is even
            for name in methods:
                if (name, seed) not in store.done:
                    own = options.get(method_of(name), {})
                    work = None if folder is None else folder / WORK
                    store.add(run_once(trial, name, ratio, seed, own, work, full))
                done += 1
                if progress is not None:
                    progress(done, total)
    runs = [store.done[name, seed] for name in methods for seed in range(seeds)]
    return Compared(about=about, full=full.to_json(), runs=runs)


def _check(
    methods: Sequence[str], ratio: float, seeds: int, options: Mapping[str, Mapping[str, Any]]
) -> None:
    if not methods:
        raise UsageError("A comparison needs at least one method.")
    if seeds < 1:
        raise UsageError(f"A comparison needs at least one seed, not {seeds}.")
    Layout(()).kept_at(ratio)
    for method in [*(method_of(name) for name in methods if name != ALL), *options]:
        METHODS[method]
        if method in ("pattern", "layers"):
            raise UsageError(f"The method '{method}' has no ratio, so it cannot be compared.")
    if len(set(methods)) < len(methods):
        raise UsageError("A method is named twice.")


def method_of(name: str) -> str:
    """The method in a name, whether or not it is followed by recovery.

    >>> method_of("surgeon+recover")
    'surgeon'
    """
    return name.removesuffix(RECOVER)


def run_once(
    trial: Trial,
    name: str,
    ratio: float | None,
    seed: int,
    options: Mapping[str, Any],
    work: Path | None,
    full: Evaluation,
) -> Run:
    """One cut with its training and score, and what it lost against the `full` model.

    `work` is where it can be resumed, and gone after it.
    """
    started = time.monotonic()
    own = replace(
        trial,
        recover=trial.recover or name.endswith(RECOVER),
        budget=Budget(),
        used={},
        work=work,
    )
    if name == ALL:
        decision = Decision(mask=Mask.full(trial.layout))
    else:
        decision = own.prepare(method_of(name), options, seed)(ratio, seed)
    mask = decision.mask
    small, done = own.cut(decision, seed)
    found = own.score(small)
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)
    return Run(
        method=name,
        seed=seed,
        kept=len(mask),
        pattern=mask.pattern,
        score=found.score,
        low=found.scores[0].low,
        high=found.scores[0].high,
        n=found.n,
        budget=own.budget.to_json(),
        learned=done.get("learned"),
        seconds=round(time.monotonic() - started, 1),
        **loss_columns(trial.difference(full, found)),
    )
