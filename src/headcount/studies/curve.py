"""Score against the share of heads removed (D2, B6, B9): `hc.curve(model, "sst2", out="curve")`.

Every finished point is kept in the folder; the same call again, or one with more methods, ratios
or seeds, computes only what is missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headcount.errors import UsageError
from headcount.heads import Layout, Mask, Scores
from headcount.pruning.methods import METHODS, Decide, needs_of
from headcount.studies.full import keep, kept
from headcount.studies.identity import identity
from headcount.studies.notes import Note, log
from headcount.studies.points import Found, Point, Store, point_of
from headcount.studies.store import WORK, held
from headcount.studies.trial import Trial, make_trial
from headcount.tasks import Task, open_task
from headcount.tasks.loading import tokenizer_of
from headcount.training.evaluate import Evaluation
from headcount.training.options import TrainOptions

RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TOGETHER = 32
"""Masks scored in one pass over the data; between two passes a run can stop."""
TRIALS = 10
"""Clusterings behind the chance of each head being pruned (A9)."""

Progress = Callable[[int, int], None]


def curve(
    model: PreTrainedModel,
    task: str | Task,
    methods: Sequence[str] = ("random", "cluster", "importance"),
    ratios: Sequence[float] = RATIOS,
    *,
    seeds: int = 5,
    out: str | Path | None = None,
    tokenizer: Any = None,
    recover: bool = False,
    finetune: TrainOptions | bool = False,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    note: Note = log,
    **settings: Any,
) -> Found:
    """The score of every method at every ratio, with `seeds` cuts each, beside the full model.

    A seed is a draw (random), a clustering (cluster), or a sample of the rows that gradients are
    taken on (importance), and the seed of training. `options` are by method; `settings` go to the
    trial: inputs, samples, split, limit, max_length, draws, seed (of what is scored), device and
    fresh. `note` is called with what must not be missed.
    """
    _check(methods, ratios, seeds)
    opened = open_task(task) if isinstance(task, str) else task
    tokenizer = tokenizer if tokenizer is not None else tokenizer_of(model)
    trains = TrainOptions() if finetune is True else finetune or None
    folder = None if out is None else Path(out).expanduser()
    trial = make_trial(
        model, task=opened, tokenizer=tokenizer, recover=recover, finetune=trains,
        work=None if folder is None else folder / WORK, note=note, **settings,
    )  # fmt: skip
    options = options or {}
    for method in methods:
        if needs_of(method) in ("nothing", "training"):
            # wrong options of what costs nothing to prepare are told before anything is scored
            trial.prepare(method, options.get(method, {}), 0)
    about = identity(trial, options, finetune=None if trains is None else trains.identity())
    trial.tell_seen(methods)
    with held(folder):
        store = Store(folder, about, overwrite=overwrite, note=note)
        run = _Run(trial, options, store, progress, 1 + len(methods) * len(ratios) * seeds)
        full = run.full()
        wanted = [
            run.method(method, [float(ratio) for ratio in ratios], range(seeds))
            for method in methods
        ]
    chance = {}
    if "cluster" in methods:
        decide = run.prepare("cluster", 0)
        chance = {float(ratio): pruning_chance(decide, ratio, trial.layout) for ratio in ratios}
    points = [point for part in wanted for point in part]
    return Found(about=about, full=full, points=points, chance=chance)


def pruning_chance(decide: Decide, ratio: float, layout: Layout, trials: int = TRIALS) -> Scores:
    """How often each head goes over so many trials: from 0, never, to 1, always (A9)."""
    gone = dict.fromkeys(layout, 0)
    for seed in range(trials):
        for head in decide(ratio, seed).mask.dropped:
            gone[head] += 1
    return Scores(layout, tuple(gone[head] / trials for head in layout))


def _check(methods: Sequence[str], ratios: Sequence[float], seeds: int) -> None:
    if not methods or not ratios:
        raise UsageError("A curve needs at least one method and one ratio.")
    if seeds < 1:
        raise UsageError(f"A curve needs at least one seed, not {seeds}.")
    for ratio in ratios:
        Layout(()).kept_at(ratio)
    for method in methods:
        METHODS[method]
        if method in ("pattern", "layers"):
            raise UsageError(
                f"The method '{method}' has no ratio, so it has no curve; use headcount prune."
            )
    if len(set(methods)) < len(methods):
        raise UsageError("A method is named twice.")


@dataclass
class _Run:
    """A curve under way."""

    trial: Trial
    options: Mapping[str, Mapping[str, Any]]
    store: Store
    progress: Progress | None
    total: int
    done: int = 0
    before: Evaluation | None = None
    """The full model, for the difference from it."""
    prepared: dict[tuple[str, int], Decide] = field(default_factory=dict)

    def full(self) -> Point:
        """The model with all its heads."""
        point, before = self.store.get("full", 0.0, 0), kept(self.store.folder)
        if point is None or before is None:
            before = keep(self.trial.score_full(), self.store.folder)
            mask, loss = Mask.full(self.trial.layout), self.trial.difference(before, before)
            point = self.store.add(point_of(before, "full", 0.0, 0, mask, loss))
            self._clear()
        self.before = before
        self.advance(1)
        return point

    def method(self, method: str, ratios: Sequence[float], seeds: range) -> list[Point]:
        """All points of a method, the missing ones computed and kept as they come."""
        missing = [
            (ratio, seed)
            for seed in seeds
            for ratio in ratios
            if self.store.get(method, ratio, seed) is None
        ]
        self.advance(len(ratios) * len(seeds) - len(missing))
        step = 1 if self.trial.repairs else TOGETHER
        for start in range(0, len(missing), step):
            part = missing[start : start + step]
            decided = [self.prepare(method, seed)(ratio, seed) for ratio, seed in part]
            masks = [decision.mask for decision in decided]
            scored = self.trial.score_decisions(decided, [seed for _, seed in part])
            self._keep(method, part, masks, scored)
        found = (self.store.get(method, ratio, seed) for ratio in ratios for seed in seeds)
        return [point for point in found if point is not None]

    def _keep(
        self,
        method: str,
        part: Sequence[tuple[float, int]],
        masks: Sequence[Mask],
        scored: Sequence[Evaluation],
    ) -> None:
        assert self.before is not None
        for (ratio, seed), mask, found in zip(part, masks, scored, strict=True):
            loss = self.trial.difference(self.before, found)
            self.store.add(point_of(found, method, ratio, seed, mask, loss))
        self._clear()
        self.advance(len(part))

    def _clear(self) -> None:
        """What a point under way could be resumed from goes when it is there."""
        if self.trial.work is not None:
            shutil.rmtree(self.trial.work, ignore_errors=True)

    def prepare(self, method: str, seed: int) -> Decide:
        """The method, once; once for every seed where it looks at a sample of rows."""
        key = (method, seed if needs_of(method) == "rows" else 0)
        if key not in self.prepared:
            own = self.options.get(method, {})
            self.prepared[key] = self.trial.prepare(method, own, key[1])
        return self.prepared[key]

    def advance(self, points: int) -> None:
        """So many points more are there."""
        self.done += points
        if self.progress is not None:
            self.progress(self.done, self.total)
