"""Score against the share of heads removed: `hc.curve(model, "sst2", out="curve")`.

A curve is a list of cuts: methods × ratios × seeds. Every finished one is kept in the folder; the
same call again, or one with more methods, ratios or seeds, computes only what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.heads import Layout, Scores
from headcount.pruning.methods import AnyMethod, Decide, Method, as_method, name_of
from headcount.repair.repairs import Repair, as_repairs
from headcount.runs.identity import identity
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import Note, log
from headcount.runs.subject import Subject, make_subject
from headcount.studies.many import Progress, StudyCell, SubjectStudy, check_labels, check_seeds
from headcount.studies.points import Point, StudyResult, versus_random
from headcount.studies.store import opened
from headcount.tasks.calibration import Calibration
from headcount.tasks.task import Task
from headcount.training.logging import Logging
from headcount.training.scoring import Scoring

METHODS = ("random", "cluster", "importance")
RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TRIALS = 10
"""Clusterings behind the chance of each head being pruned."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve(StudyResult):
    """The full model, every point, and each head's chance of going where it clusters."""

    chance: Mapping[float, Scores] = field(default_factory=dict)
    """Ratio -> how often each head was pruned over clusterings."""

    def summary(self) -> list[dict[str, Any]]:
        """For each method and ratio: mean, spread, best and worst over seeds, and relative score.

        `low` and `high` are the 95 % interval of the mean over seeds (Student's t), and so are
        those of the `difference` from the full model; of one seed that is over the same rows.
        Beside random cuts, `than_random` says whether a method is better at this ratio, corrected
        for the number of such comparisons in the whole curve.
        """
        groups: dict[tuple[str, Any], list[Point]] = {}
        for point in self.points:
            groups.setdefault((point.method, point.ratio), []).append(point)
        pairs = {key: (key, ("random", key[1])) for key in groups if key[0] != "random"}
        pairs = {key: pair for key, pair in pairs.items() if pair[1] in groups}
        found = self.compared(groups, pairs.values())
        rows = []
        for (method, ratio), own in groups.items():
            row = {"method": method, "ratio": ratio, **self.group(own)}
            if (method, ratio) in pairs:
                row |= versus_random(found[pairs[method, ratio]])
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, Any]:
        """A plain dict: what was asked, the full model, the summary, all points, the chances."""
        chance = {str(ratio): each.by_layer() for ratio, each in self.chance.items()}
        return super().to_json() | {"chance": chance}


def curve(
    model: Subject | PreTrainedModel | str,
    task: Task | str | None = None,
    methods: Sequence[AnyMethod] = METHODS,
    ratios: Sequence[float] = RATIOS,
    *,
    seeds: int = 5,
    tokenizer: PreTrainedTokenizerBase | None = None,
    repair: Repair | str | Sequence[Repair | str] | None = None,
    calibration: Calibration | None = None,
    scoring: Scoring | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    note: Note = log,
    logging: Logging | None = None,
) -> Curve:
    """The score of every method at every ratio, with `seeds` cuts each, beside the full model.

    A method is a name, a value as in `hc.Importance(step=0.05)`, or a function. A seed is a draw
    (random), a clustering (cluster), or a sample of the rows that gradients are taken on
    (importance), and the seed of training. `scoring` is the same for all. `note` is called with
    what must not be missed, `logging` says which trackers are told of training and of finished
    runs.
    """
    steps = as_repairs(repair)
    trains = any(step.needs == "training" for step in steps)
    subject = make_subject(model, task, tokenizer=tokenizer, trains=trains)
    like = Prune(
        method=as_method("random"), repair=steps, calibration=calibration or Calibration(),
        scoring=scoring or Scoring(), baseline=0,
    )  # fmt: skip
    chosen = [as_method(each) for each in methods]
    wanted = cuts(like, chosen, ratios, seeds)
    about = identity(subject, like, chosen)
    with opened(out, about, overwrite=overwrite, note=note) as store:
        study = SubjectStudy(
            subject=subject, store=store, about=about, note=note, progress=progress,
            logging=logging or Logging(),
        )  # fmt: skip
        study.check(wanted)
        full = study.full(wanted[0]).to_json()
        found = study.points(wanted)  # seed by seed: gradients of one sample serve all ratios
        chance = {}
        if any(name_of(method) == "cluster" for method in chosen):
            first = next(each for each in wanted if each.label == "cluster")
            decide = study.cutting(first).prepare().decide
            chance = {
                float(ratio): pruning_chance(decide, ratio, subject.layout) for ratio in ratios
            }
    points = by_ratio(found, len(ratios), seeds)
    return Curve(about=about, full=full, points=points, chance=chance)


def cuts(
    like: Prune, methods: Sequence[Method], ratios: Sequence[float], seeds: int
) -> list[StudyCell]:
    """The cuts of a curve, or a refusal of what has none."""
    if not methods or not ratios:
        raise UsageError("A curve needs at least one method and one ratio.")
    check_seeds("A curve", seeds)
    for ratio in ratios:
        Layout(()).kept_at(ratio)
    labels = [name_of(method) for method in methods]
    check_labels(labels)
    for method, name in zip(methods, labels, strict=True):
        if method.ratio == "none":
            raise UsageError(
                f"The method '{name}' has no ratio, so it has no curve; use headcount prune."
            )
    return [
        StudyCell(label=name, asked=_at(like, method, float(ratio)), seed=seed)
        for method, name in zip(methods, labels, strict=True)
        for seed in range(seeds)
        for ratio in ratios
    ]


def _at(like: Prune, method: Method, ratio: float) -> Prune:
    gated = not like.repair and method.needs != "training"
    return Prune(
        method=method,
        ratio=ratio,
        repair=like.repair,
        calibration=like.calibration,
        scoring=like.scoring,
        baseline=0,
        gated=gated,
    )


def by_ratio(points: Sequence[Point], ratios: int, seeds: int) -> list[Point]:
    """Points that came method by method and seed by seed, ratio by ratio."""
    each = ratios * seeds
    return [
        points[start + seed * ratios + ratio]
        for start in range(0, len(points), each)
        for ratio in range(ratios)
        for seed in range(seeds)
    ]


def pruning_chance(decide: Decide, ratio: float, layout: Layout, trials: int = TRIALS) -> Scores:
    """How often each head goes over so many trials: from 0, never, to 1, always."""
    gone = dict.fromkeys(layout, 0)
    for seed in range(trials):
        for head in decide(ratio, seed).mask.dropped:
            gone[head] += 1
    return Scores(layout, tuple(gone[head] / trials for head in layout))
