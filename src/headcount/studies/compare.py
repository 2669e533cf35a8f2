"""Methods at equal sparsity and equal training, over seeds.

    found = hc.compare(model, "mrpc", ratio=0.5, seeds=5, train=TrainOptions(epochs=3), out="mrpc")

Every method ends with the same number of heads and has one training with the same options: after
the pruning, or, where it trains gates, together with them. "all-heads" is that training without
pruning; a name that ends in "+recover" is the method with its output projections solved again
between pruning and training. Every seed is a draw or a sample of rows, and the seed of the
training; methods are compared with random prunings seed by seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.heads import Layout
from headcount.pruning.methods import AnyMethod, Method, as_method, name_of
from headcount.repair.finetune import Finetune
from headcount.repair.recover import Recover
from headcount.runs.advice import ALL, COMPARED, RECOVER
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
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(StudyResult):
    """All prunings, and the model they started from."""

    def summary(self) -> list[dict[str, Any]]:
        """For each method: mean over seeds with its interval, and the differences.

        `against_random` and `against_all_heads` are paired by seed: from random prunings, and from
        the same training without pruning; both are corrected for the number of comparisons in the
        table. `difference` is from the model as it was given.
        """
        groups: dict[str, list[Point]] = {}
        for point in self.points:
            groups.setdefault(point.method, []).append(point)
        tests = self.compared(groups, lambda _: ALL, lambda _: "random")
        rows = []
        for method, points in groups.items():
            row = {
                "method": method,
                **self.group(points),
                "budget": points[0].budget.to_json(),
                "gap": _gap(points),
            }
            if (method, ALL) in tests:
                row["against_all_heads"] = tests[method, ALL]
            if (method, "random") in tests:
                row |= versus_random(tests[method, "random"])
            rows.append(row)
        return rows


def _gap(points: Sequence[Point]) -> float | None:
    """Mean gap between training and test gates, where it was measured."""
    gaps = [point.learned and point.learned.gap for point in points]
    values = [gap.gap for gap in gaps if gap and gap.gap is not None]
    return float(np.mean(values)) if values else None


def compare(
    model: Subject | PreTrainedModel | str,
    task: Task | str | None = None,
    methods: Sequence[AnyMethod] | Mapping[str, AnyMethod] = COMPARED,
    *,
    ratio: float = 0.5,
    seeds: int = 5,
    train: TrainOptions | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    calibration: Calibration | None = None,
    scoring: Scoring | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    executor_options: ExecutorOptions | None = None,
    command: str | None = None,
    progress: Progress | None = None,
    note: Note = log,
    logging: Logging | None = None,
) -> Comparison:
    """Prune by every method with every seed, train each alike, score, and compare with random.

    A method is a name, which may end in "+recover", a value as in `hc.Importance(step=0.05)`,
    or a function; a mapping gives values such names. The other arguments are those of `hc.curve`.
    """
    subject = open_study(model, task, tokenizer)
    like = Prune(
        method=as_method("random"),
        ratio=ratio,
        repair=(Finetune.of(train or TrainOptions()),),
        calibration=calibration or Calibration(),
        scoring=scoring or Scoring(),
        baseline=0,
    )
    if not isinstance(methods, Mapping):
        pairs = [labelled(method) for method in methods]
        check_labels([label for label, _ in pairs])
        methods = dict(pairs)
    chosen = {label: as_method(method) for label, method in methods.items()}
    study = PruneStudy(
        subject=subject,
        like=like,
        about=identity(subject, like, list(chosen.values()), ratio=ratio),
        plan=compare_plan(run_of(subject, like), chosen, seeds),
        out=out,
        overwrite=overwrite,
        executor_options=executor_options or ExecutorOptions(),
        command=command,
        progress=progress,
        note=note,
        logging=logging or Logging(),
    )
    full, points = study.points()
    return Comparison(about=study.about, full=full, points=points)


def labelled(method: AnyMethod) -> tuple[str, Method]:
    """What a comparison calls a method, and the method.

    >>> labelled("surgeon+recover")
    ('surgeon+recover', Surgeon(label_seed=0))
    """
    if isinstance(method, str):
        return method, as_method(method.removesuffix(RECOVER))
    value = as_method(method)
    return name_of(value), value


def compare_plan(run: Run, methods: Mapping[str, Method], seeds: int) -> Plan:
    """The runs of a comparison, seed by seed, so that one that is stopped is even."""
    if not methods:
        raise UsageError("A comparison needs at least one method.")
    check_seeds("A comparison", seeds)
    like, options = run.options_as(Prune), {}
    assert isinstance(like.ratio, float | int)
    Layout(()).kept_at(like.ratio)
    for label, method in methods.items():
        if method.ratio == "none" and label != ALL:
            raise UsageError(
                f"The method '{name_of(method)}' has no ratio, so it cannot be compared."
            )
        repair = (Recover(), *like.repair) if label.endswith(RECOVER) else like.repair
        ratio = None if label == ALL else float(like.ratio)
        options[label] = replace(like, method=method, ratio=ratio, repair=repair)
    cells = [
        ({"method": label, "seed": seed}, options[label], "recover" * label.endswith(RECOVER))
        for seed in range(seeds)
        for label in methods
    ]
    return plan_prunes(run, "compare", cells)
