"""One number of learned gates varied, all else the same: sparsity and score.

    found = hc.sweep(model, "cola", "mu", [1e-4, 1e-3, 1e-2], seeds=3, out="sweep")

Every value and seed is one training of gates and weights with free sparsity: no ratio is asked
for, so the value decides how many heads stay.

A run in which all gates close has no heads to give. It is a point of the sweep all the same: its
sparsity is 1, and its score that of the model at that moment with all heads removed, that is with
the weights of the step in which the last gate closed. Training stopped there, so it had fewer
steps than the others and none to settle in; its record says when, and which heads were open last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.base.names import did_you_mean
from headcount.base.options import changed, types_of
from headcount.pruning.methods import Method, as_method, name_of
from headcount.repair.finetune import Finetune
from headcount.runs.identity import identity
from headcount.runs.kinds.prune import FREE, Prune
from headcount.runs.notes import Note, log
from headcount.runs.prune import run_of
from headcount.runs.run import Run
from headcount.runs.subject import Subject
from headcount.statistics import rank_correlation
from headcount.studies.driver import Progress
from headcount.studies.executors.protocol import ExecutorOptions
from headcount.studies.plan import Plan
from headcount.studies.points import Point, StudyResult, by_seed
from headcount.studies.prunes import PruneStudy, check_seeds, open_study, plan_prunes
from headcount.studies.summary import SHARE, Scale, compare_with, over_seeds
from headcount.tasks.task import Task
from headcount.training.logging import Logging
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring

ALL = "all heads"
"""What the prunings of a sweep are held against."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sweep(StudyResult):
    """All prunings, and the model they started from."""

    def summary(self) -> list[dict[str, Any]]:
        """For each value sparsity and score: mean with its interval, and ends, over seeds.

        `against_all_heads` is from the model as it was given, corrected for the number of values;
        `than_all_heads` says whether it is better, alike or worse.
        """
        groups: dict[float | None, list[Point]] = {}
        for point in self.points:
            groups.setdefault(point.value, []).append(point)
        full = math.nan if self.full["score"] is None else self.full["score"]
        seeds: dict[Any, dict[int, float]] = {
            value: by_seed(points) for value, points in groups.items()
        }
        seeds[ALL] = {point.seed: full for point in self.points}
        scale = Scale(self.metric, self.points[0].n, self.full["score"])
        tests = compare_with(seeds, [lambda _: ALL], scale)
        rows = []
        for value, points in groups.items():
            whole, shares = self.group(points), [point.sparsity for point in points]
            mean, low, high = over_seeds(shares, SHARE)
            ends = {"worst": min(shares), "best": max(shares)}
            rows.append(
                {
                    "value": value,
                    "seeds": len(points),
                    "kept": float(np.mean([point.kept for point in points])),
                    "sparsity": {"mean": mean, "low": low, "high": high, **ends},
                    "score": {
                        name: whole[name] for name in ("mean", "low", "high", "worst", "best")
                    },
                    **{name: whole[name] for name in ("relative", "difference", "lost")},
                    "against_all_heads": tests[value, ALL],
                    "than_all_heads": tests[value, ALL]["verdict"],
                    "all_closed": sum(point.all_closed is not None for point in points),
                }
            )
        return rows

    def trends(self) -> dict[str, dict[str, float]]:
        """Spearman's rank correlation of the value with sparsity and with score, over all runs."""
        values = [point.value or 0.0 for point in self.points]
        return {
            "sparsity": rank_correlation(values, [point.sparsity for point in self.points]),
            "score": rank_correlation(values, [point.score for point in self.points]),
        }

    def to_json(self) -> dict[str, object]:
        """A plain dict: what was asked, the full model, the summary, the trends, all points."""
        return super().to_json() | {"trends": self.trends()}


def sweep(
    model: Subject | PreTrainedModel | str,
    task: Task | str | None = None,
    over: str = "mu",
    values: Sequence[float] = (),
    *,
    method: Method | str = "straight-through",
    seeds: int = 3,
    train: TrainOptions | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    scoring: Scoring | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    executor_options: ExecutorOptions | None = None,
    command: str | None = None,
    progress: Progress | None = None,
    note: Note = log,
    logging: Logging | None = None,
) -> Sweep:
    """Train the method's gates with every value of its option `over`, `seeds` times each.

    The other arguments are those of `hc.curve`.
    """
    subject = open_study(model, task, tokenizer)
    like = Prune(
        method=as_method(method),
        ratio=FREE,
        repair=(Finetune.of(train or TrainOptions()),),
        scoring=scoring or Scoring(),
        baseline=0,
    )
    study = PruneStudy(
        subject=subject,
        like=like,
        about=identity(subject, like, [like.method], method=like.name, over=over),
        plan=sweep_plan(run_of(subject, like), over, values, seeds),
        out=out,
        overwrite=overwrite,
        executor_options=executor_options or ExecutorOptions(),
        command=command,
        progress=progress,
        note=note,
        logging=logging or Logging(),
    )
    full, points = study.points(over)
    return Sweep(about=study.about, full=full, points=points)


def sweep_plan(run: Run, over: str, values: Sequence[float], seeds: int) -> Plan:
    """The runs of a sweep, seed by seed, or a refusal of what says nothing."""
    like = run.options_as(Prune)
    check_sweep(like.method, over, values, seeds)
    options = {name: getattr(like.method, name) for name in types_of(type(like.method))}
    methods = {
        float(value): type(like.method)(**options | {over: float(value)}) for value in values
    }
    if any(swept.ratio == "needed" for swept in methods.values()):
        raise UsageError(
            f"The method '{like.name}' keeps exactly as many heads as it is asked for, so "
            "there is no sparsity to sweep: use straight-through or hard-concrete."
        )
    cells = [
        ({over: value, "seed": seed}, replace(like, method=swept), f"{over}={value:g}")
        for seed in range(seeds)
        for value, swept in methods.items()
    ]
    return plan_prunes(run, "sweep", cells)


def read_over(text: str) -> tuple[str, list[float]]:
    """`gate-lr=0.1,0.5` as the option's name and its values."""
    name, equals, rest = text.partition("=")
    words = [word.strip() for word in rest.split(",") if word.strip()]
    if not equals or not name.strip() or not words:
        raise UsageError(f"'{text}' is not an option with values; write --over mu=1e-4,1e-3,1e-2.")
    values = []
    for word in words:
        try:
            values.append(float(word))
        except ValueError:
            raise UsageError(f"'{word}' in --over {text} is not a number.") from None
    return name.strip().removeprefix("--").replace("-", "_"), values


def check_sweep(method: Method, over: str, values: Sequence[float], seeds: int) -> None:
    """Refuse a sweep that says nothing, before anything is loaded."""
    name, numeric = name_of(method), numeric_options(method)
    if over not in numeric:
        raise UsageError(
            f"'{over}' is no number of the method '{name}'.{did_you_mean(over, numeric)} "
            f"Numbers to sweep over: {', '.join(numeric)}."
        )
    if over in (points := changed(method)):
        raise UsageError(f"'{over}' is swept over, so it cannot also be set to {points[over]}.")
    if wrong := [value for value in values if not math.isfinite(value)]:
        raise UsageError(f"{wrong[0]} is no value of '{over}' to sweep over.")
    if twice := [value for at, value in enumerate(values) if value in values[:at]]:
        raise UsageError(f"The value {twice[0]:g} of '{over}' is named twice.")
    if len(values) < 2:
        raise UsageError(f"A sweep needs at least two values of '{over}', not {len(values)}.")
    check_seeds("A sweep", seeds)


def numeric_options(method: Method) -> list[str]:
    """What can be swept over: the numbers among the options of a method that trains gates."""
    if method.needs != "training":
        raise UsageError(
            f"The method '{name_of(method)}' trains no gates, so there is nothing to sweep over: "
            "use straight-through or hard-concrete."
        )
    return [name for name, wanted in types_of(type(method)).items() if wanted is float]
