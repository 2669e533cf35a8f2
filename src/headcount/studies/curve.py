"""Score against the share of heads removed: `hc.curve(model, "sst2", out="curve")`.

A curve is a list of prunings: methods × ratios × seeds. Every finished one is kept in the folder;
the same call again, or one with more methods, ratios or seeds, computes only what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.heads import Layout, Scores
from headcount.pruning.methods import AnyMethod, Decide, Method, as_method, name_of
from headcount.repair.repairs import Repair, as_repairs
from headcount.runs.advice import CURVES, RATIOS
from headcount.runs.cutting import PruningRun
from headcount.runs.identity import identity
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import Note, log
from headcount.runs.prune import run_of
from headcount.runs.run import Run
from headcount.runs.subject import Subject
from headcount.studies.driver import Progress
from headcount.studies.executors.protocol import ExecutorOptions
from headcount.studies.plan import Plan
from headcount.studies.points import Point, StudyResult, versus_random
from headcount.studies.prunes import (
    PruneStudy,
    check_labels,
    check_seeds,
    open_study,
    plan_prunes,
)
from headcount.tasks.calibration import Calibration
from headcount.tasks.task import Task
from headcount.training.logging import Logging
from headcount.training.scoring import Scoring

TRIALS = 10
"""Clusterings behind how often each head is pruned."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve(StudyResult):
    """The full model, every point, and how often each head goes where it clusters."""

    frequency: Mapping[float, Scores] = field(default_factory=dict)
    """Ratio -> how often each head was pruned over clusterings."""

    def summary(self) -> list[dict[str, Any]]:
        """For each method and ratio: mean, spread, best and worst over seeds, and relative score.

        `low` and `high` are the 95 % interval of the mean over seeds (Student's t), and so are
        those of the `difference` from the full model; of one seed both are over its rows.
        Beside random prunings, `than_random` says whether a method is better at this ratio,
        corrected for the number of such comparisons in the whole curve.
        """
        groups: dict[tuple[str, Any], list[Point]] = {}
        for point in self.points:
            groups.setdefault((point.method, point.ratio), []).append(point)
        tests = self.compared(groups, lambda key: ("random", key[1]))
        rows = []
        for (method, ratio), points in groups.items():
            row = {"method": method, "ratio": ratio, **self.group(points)}
            if test := tests.get(((method, ratio), ("random", ratio))):
                row |= versus_random(test)
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, object]:
        """A plain dict: what was asked, the full model, the summary, all points, frequencies."""
        frequency = {str(ratio): scores.by_layer() for ratio, scores in self.frequency.items()}
        return super().to_json() | {"frequency": frequency}


def curve(
    model: Subject | PreTrainedModel | str,
    task: Task | str | None = None,
    methods: Sequence[AnyMethod] = CURVES,
    ratios: Sequence[float] = RATIOS,
    *,
    seeds: int = 5,
    tokenizer: PreTrainedTokenizerBase | None = None,
    repair: Repair | str | Sequence[Repair | str] | None = None,
    calibration: Calibration | None = None,
    scoring: Scoring | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    executor_options: ExecutorOptions | None = None,
    command: str | None = None,
    progress: Progress | None = None,
    note: Note = log,
    logging: Logging | None = None,
) -> Curve:
    """The score of every method at every ratio, with `seeds` runs each, beside the full model.

    A method is a name, a value as in `hc.Importance(step=0.05)`, or a function. A seed is a draw
    (random), a clustering (cluster), or a sample of the rows that gradients are taken on
    (importance), and the seed of training. `scoring` is the same for all. `executor_options` says
    where the runs are carried out: one after the other in this process when left out. `command` is
    kept with the study. `note` is called with what must not be missed, `logging` says which
    trackers are told of training and of finished runs.
    """
    steps = as_repairs(repair)
    trains = any(step.needs == "training" for step in steps)
    subject = open_study(model, task, tokenizer, trains=trains)
    like = Prune(
        method=as_method("random"),
        repair=steps,
        calibration=calibration or Calibration(),
        scoring=scoring or Scoring(),
        baseline=0,
    )
    chosen = [as_method(method) for method in methods]
    study = PruneStudy(
        subject=subject,
        like=like,
        about=identity(subject, like, chosen),
        plan=curve_plan(run_of(subject, like), chosen, ratios, seeds),
        out=out,
        overwrite=overwrite,
        executor_options=executor_options or ExecutorOptions(),
        command=command,
        progress=progress,
        note=note,
        logging=logging or Logging(),
    )
    full, points = study.points()
    frequency = {}
    if cluster := next((scores for scores in chosen if name_of(scores) == "cluster"), None):
        decide = PruningRun(subject=subject, options=replace(like, method=cluster)).prepare().decide
        frequency = {
            float(ratio): pruning_frequency(decide, ratio, subject.layout) for ratio in ratios
        }
    return Curve(about=study.about, full=full, points=points, frequency=frequency)


def curve_plan(like: Run, methods: Sequence[Method], ratios: Sequence[float], seeds: int) -> Plan:
    """The runs of a curve, seed by seed: gradients of one sample serve all ratios."""
    if not methods or not ratios:
        raise UsageError("A curve needs at least one method and one ratio.")
    check_seeds("A curve", seeds)
    for ratio in ratios:
        Layout(()).kept_at(ratio)
    check_labels([name_of(method) for method in methods])
    for method in methods:
        if method.ratio == "none":
            raise UsageError(
                f"The method '{name_of(method)}' has no ratio, so it has no curve; use headcount "
                "prune."
            )
    options, cells = like.options_as(Prune), []
    for method, seed, ratio in product(methods, range(seeds), map(float, ratios)):
        gated = not options.repair and method.needs != "training"
        axes = {"method": name_of(method), "seed": seed, "ratio": ratio}
        cells.append((axes, replace(options, method=method, ratio=ratio, gated=gated), ""))
    return plan_prunes(like, "curve", cells)


def pruning_frequency(decide: Decide, ratio: float, layout: Layout, trials: int = TRIALS) -> Scores:
    """How often each head goes over so many trials: from 0, never, to 1, always."""
    gone = dict.fromkeys(layout, 0)
    for seed in range(trials):
        for head in decide(ratio, seed).mask.dropped:
            gone[head] += 1
    return Scores(layout, tuple(gone[head] / trials for head in layout))
