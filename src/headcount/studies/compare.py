"""Methods at equal sparsity and equal training, over seeds.

    found = hc.compare(model, "mrpc", ratio=0.5, seeds=5, train=TrainOptions(epochs=3), out="mrpc")

Every method ends with the same number of heads and has one training with the same options: after
the cut, or, where it trains gates, together with them. "all-heads" is that training without a cut;
a name that ends in "+recover" is the method with its output projections solved again between cut
and training. Every seed is a draw or a sample of rows, and the seed of the training; methods are
compared with random cuts seed by seed.
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
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring

ALL = "all-heads"
"""Stands for no cut: the given model with the same training."""
RECOVER = "+recover"
"""After a method's name: recovery between its cut and its training."""
COMPARED = (
    ALL, "random", "importance", "hard-concrete", "meta", "subset", "cluster",
    "straight-through", "surgeon+recover",
)  # fmt: skip
"""What is compared when nobody says what."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(StudyResult):
    """All cuts, and the model they started from."""

    def summary(self) -> list[dict[str, Any]]:
        """For each method: mean over seeds with its interval, and the differences.

        `against_random` and `against_all_heads` are paired by seed: from random cuts, and from the
        same training without a cut; both are corrected for the number of comparisons in the table.
        `difference` is from the model as it was given.
        """
        groups: dict[str, list[Point]] = {}
        for point in self.points:
            groups.setdefault(point.method, []).append(point)
        pairs = [
            (method, other)
            for other in (ALL, "random")
            for method in groups
            if other in groups and method != other
        ]
        found = self.compared(groups, pairs)
        rows = []
        for method, own in groups.items():
            row = {"method": method, **self.group(own), "budget": own[0].budget, "gap": _gap(own)}
            if (method, ALL) in found:
                row["against_all_heads"] = found[method, ALL]
            if (method, "random") in found:
                row |= versus_random(found[method, "random"])
            rows.append(row)
        return rows


def _gap(own: Sequence[Point]) -> float | None:
    """Mean gap between training and test gates, where it was measured."""
    gaps = [(point.learned or {}).get("gap") for point in own]
    values = [gap["gap"] for gap in gaps if gap]
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
    progress: Progress | None = None,
    note: Note = log,
    logging: Logging | None = None,
) -> Comparison:
    """Cut by every method with every seed, train each alike, score, and compare with random.

    A method is a name, which may end in "+recover", a value as in `hc.Importance(step=0.05)`,
    or a function; a mapping gives values such names. `note` is called with what must not be missed,
    `logging` says which trackers are told of training and of finished runs.
    """
    subject = make_subject(model, task, tokenizer=tokenizer)
    like = Prune(
        method=as_method("random"), ratio=ratio, repair=(Finetune.of(train or TrainOptions()),),
        calibration=calibration or Calibration(), scoring=scoring or Scoring(), baseline=0,
    )  # fmt: skip
    if not isinstance(methods, Mapping):
        pairs = [labelled(each) for each in methods]
        check_labels([label for label, _ in pairs])
        methods = dict(pairs)
    chosen = {label: as_method(method) for label, method in methods.items()}
    wanted = cuts(like, chosen, seeds)
    about = identity(subject, like, list(chosen.values()), ratio=ratio)
    with opened(out, about, overwrite=overwrite, note=note) as store:
        study = SubjectStudy(
            subject=subject, store=store, about=about, note=note, progress=progress,
            logging=logging or Logging(),
        )  # fmt: skip
        study.check(wanted)
        full = study.full(wanted[0]).to_json()
        found = study.points(wanted)
    points = [point for place in range(len(methods)) for point in found[place :: len(methods)]]
    return Comparison(about=about, full=full, points=points)


def labelled(method: AnyMethod) -> tuple[str, Method]:
    """What a comparison calls a method, and the method.

    >>> labelled("surgeon+recover")
    ('surgeon+recover', Surgeon(label_seed=0))
    """
    if isinstance(method, str):
        return method, as_method(method.removesuffix(RECOVER))
    value = as_method(method)
    return name_of(value), value


def cuts(like: Prune, methods: Mapping[str, Method], seeds: int) -> list[StudyCell]:
    """The cuts of a comparison, seed by seed, so that one that is stopped is even."""
    if not methods:
        raise UsageError("A comparison needs at least one method.")
    check_seeds("A comparison", seeds)
    assert isinstance(like.ratio, float | int)
    Layout(()).kept_at(like.ratio)
    for label, method in methods.items():
        if method.ratio == "none" and label != ALL:
            raise UsageError(
                f"The method '{name_of(method)}' has no ratio, so it cannot be compared."
            )
    asked = {}
    for label, method in methods.items():
        repair = (Recover(), *like.repair) if label.endswith(RECOVER) else like.repair
        ratio = None if label == ALL else like.ratio
        asked[label] = replace(like, method=method, ratio=ratio, repair=repair)
    return [
        StudyCell(label=label, asked=each, seed=seed)
        for seed in range(seeds)
        for label, each in asked.items()
    ]
