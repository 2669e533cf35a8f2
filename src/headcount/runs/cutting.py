"""One pruning of one subject: decide, remove, repair, score.

cutting  = PruningRun(subject=subject, options=Prune(method=Surgeon(), ratio=0.5), seed=0)
decision = cutting.decide()                # which heads stay
small, steps = cutting.cut(decision)       # the model without the others, repaired
found    = cutting.score(small)            # Evaluation
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headcount.base.digest import digest
from headcount.base.errors import UsageError
from headcount.base.extras import require_extra
from headcount.base.json_object import JsonDict
from headcount.base.options import defined, to_plain
from headcount.heads import Mask
from headcount.learned.keeper import AllClosedError
from headcount.models.remove import make_own, remove_sharing
from headcount.pruning.function import FunctionMethod, notes_of
from headcount.pruning.methods import Decide, Decision, MethodInputs
from headcount.pruning.uniform import uniform
from headcount.repair.finetune import Finetune, training_of
from headcount.repair.recover import Recover
from headcount.repair.repairs import Repair, RepairInputs, repair_name
from headcount.runs.budget import Budget, CountedRows
from headcount.runs.kinds.prune import NO_TARGET, Prune
from headcount.runs.notes import Note, log, rows_sentence, seen_rows
from headcount.runs.overlap import shared_rows
from headcount.runs.prune_result import (
    ClosedGates,
    FreeChoice,
    HeadCounts,
    HubDataset,
    LearnedResult,
    PruneResult,
    PruneScores,
    RepairStep,
)
from headcount.runs.results import EvaluationResult, MetricValue
from headcount.runs.subject import Subject
from headcount.runs.values import content, given_rows, used_rows
from headcount.tasks.calibration import Calibration
from headcount.tasks.encoding import EncodedRows, rows_fingerprint
from headcount.tasks.glue import HUB, LAYOUTS
from headcount.tasks.metrics import Difference
from headcount.training.evaluate import evaluate_rows
from headcount.training.evaluation import Evaluation, difference
from headcount.training.logging import Logging
from headcount.training.options import TrainingInputs


@dataclass(frozen=True, eq=False)
class PreparedMethod:
    """A method that has looked at what it needs, and what that cost."""

    decide: Decide
    budget: Budget
    used: dict[str, dict[str, Any]]
    calibration: Calibration


@dataclass(frozen=True, kw_only=True, eq=False)
class PruningRun:
    """One pruning under way."""

    subject: Subject
    options: Prune
    seed: int = 0
    """Of the draw or the sample of rows, and of training."""
    work: Path | None = None
    """Where training can be resumed, before pruning or after it; None keeps nothing."""
    note: Note = log
    """Called with what must not be missed."""
    say: Callable[[str], None] = lambda text: None
    """Called with what is being done."""
    budget: Budget = field(default_factory=Budget)
    """What this pruning has seen so far."""
    used: dict[str, dict[str, Any]] = field(default_factory=dict)
    """calibration, repair, training or evaluation -> the rows of it, for the record."""
    logging: Logging = field(default_factory=Logging)
    """Which trackers are told of its trainings."""
    noted: set[str] = field(default_factory=set)
    """Kinds of notes that were given: one of each is enough."""
    prepared: dict[Any, PreparedMethod] = field(default_factory=dict)
    """Methods that have looked at their rows, shared by the prunings of a study."""

    def __post_init__(self) -> None:
        for step in self.options.repair:
            name = repair_name(step)
            if extra := getattr(step, "extra", None):
                require_extra(extra)
            if step.needs != "calibration":
                self.subject.need_task(f"The repair '{name}' needs a task: pass --task.")
            elif self.subject.task is None and self.options.calibration.rows is None:
                # measured: solved on random tokens, a model gets worse than without
                raise UsageError(
                    f"The repair '{name}' needs inputs like those the model will see: pass --task, "
                    "or texts with --calibration."
                )

    @property
    def inputs(self) -> Any:
        """Rows or batches that were given instead of the task's; None without any."""
        length = self.options.scoring.max_length
        return self.subject.given(self.options.calibration, length, self.seed)

    def rows(self, use: str) -> EncodedRows:
        """Labelled rows for what looks at data; `use` is for what."""
        length = self.options.scoring.max_length
        rows = self.subject.looked(self.options.calibration, self.seed, length)
        self._tell_few(rows)
        self.used[use] = used_rows(rows_fingerprint(rows), self.subject.looked_at, self.seed)
        return CountedRows.of(rows, self.budget)

    def _tell_few(self, rows: EncodedRows) -> None:
        """Note fewer calibration tokens than were asked for."""
        wanted, has = self.options.calibration.tokens, int(rows.sizes.sum())
        if wanted is not None and has < wanted:
            text = f"The calibration rows have {has:,} tokens, not {wanted:,}: there are no more."
            self.tell("tokens", text)

    def prepare(self) -> PreparedMethod:
        """The method with the rows or the task that it asks for; what looks at rows does so once.

        What costs nothing to prepare tells here what is wrong with it.
        """
        method, name = self.options.method, self.options.name
        looks = method.needs in ("calibration", "labels", "training")
        if self.subject.fresh and looks and not isinstance(method, FunctionMethod):
            raise UsageError(
                f"The method '{name}' looks at gradients, which say nothing before the model "
                "is trained for the task: run headcount train first."
            )
        if method.needs == "training":
            given = MethodInputs(training=self._training(name))
            decide = method.prepare(self.subject.model, given)
            return PreparedMethod(decide, Budget(), {}, self.options.calibration)
        calibration = self.options.calibration
        drawn = method.needs in ("calibration", "labels") or (
            method.needs == "inputs" and calibration.rows is not None
        )
        seed = self.seed if drawn else 0
        counted = (calibration.samples, calibration.tokens)
        key = content([method, seed, counted, self.options.scoring.max_length])
        shared = self.subject.prepared
        prepared = self.prepared if shared is None else shared
        ready = prepared.get(key)
        if ready is None or ready.calibration.rows is not calibration.rows:
            looking = replace(self, budget=Budget(), used={})
            ready = PreparedMethod(looking._look(), looking.budget, looking.used, calibration)
            prepared[key] = ready
        return ready

    def _look(self) -> Decide:
        method, data, inputs = self.options.method, None, self.inputs
        given_scores = getattr(method, "scores", None) is not None
        labels = method.needs == "labels" and not given_scores
        unlabelled = method.needs == "calibration" and inputs is None
        if self.subject.task is not None and (labels or unlabelled):
            data = self.rows("calibration")
        if method.needs in ("inputs", "calibration") and inputs is not None:
            self.used["calibration"] = self._given_rows()
        given = MethodInputs(data=data, inputs=inputs, tokenizer=self.subject.tokenizer)
        return method.prepare(self.subject.model, given)

    def _training(self, name: str) -> TrainingInputs:
        """What a method that trains gates is given."""
        task = self.subject.need_task(f"The method '{name}' trains gates on a task: pass --task.")
        train = self.options.learning or training_of(self.options.repair)
        if train is None:
            raise UsageError(f"The method '{name}' trains gates: pass --finetune.")
        for step in self.options.repair:
            if step.needs == "calibration":
                raise UsageError(NO_TARGET.format(name, repair_name(step)))
        return TrainingInputs(
            task=task, tokenizer=self.subject.tokenizer, options=train,
            device=self.subject.model_options.device, work=self.work,
            logging=self.logging.named("seed", self.seed),
        )  # fmt: skip

    def _share(self) -> float | None:
        """The share of heads to remove, with those that linear paths cost."""
        share, layout = self.options.share, self.subject.layout
        ranks = [step for step in self.options.repair if isinstance(step, Recover)]
        paid = sum(step.heads_paid(self.subject.model) for step in ranks)
        if share is None or not paid:
            return share
        kept = layout.kept_at(share)
        if paid > kept:
            raise UsageError(
                f"Linear paths of this rank have the weights of {paid} heads, and {kept} stay: "
                "take a lower --path-rank or ratio."
            )
        self.tell(
            "paths", f"The linear paths count as {paid} of {kept} heads, so {kept - paid} stay."
        )
        return 1 - (kept - paid) / len(layout)

    def decide(self) -> Decision:
        """Which heads stay."""
        prepared, decide = self.prepare(), None
        if self.options.uniform:
            decide = uniform(prepared.decide, self.subject.layout, self.options.name)
        decision = (decide or prepared.decide)(self._share(), self.seed)
        self.budget.measured += prepared.budget.measured
        self.used.update(prepared.used)
        if decision.learned is not None:
            training = decision.learned
            self.budget.train(examples=training.examples, steps=training.steps, rows=training.rows)
            self.used["calibration"] = used_rows(self.subject.rows_of("train"), "train")
        return decision

    def cut(self, decision: Decision) -> tuple[PreTrainedModel, tuple[RepairStep, ...]]:
        """The model without the heads that go, repaired; and the steps of the repair."""
        trained = decision.learned is not None and self.options.learning is None
        full = decision.model or self.subject.model
        small, steps = remove_sharing(full, decision.mask), []
        for step in self.options.repair:
            if not isinstance(step, Recover):  # which writes to weights of its own only
                make_own(small, full)
            if trained and isinstance(step, Finetune):
                # the gates had this training, so there is none after
                name, options = repair_name(step), self._options(step)
                steps.append(RepairStep(name=name, options=options, with_gates=True))
            else:
                steps.append(self._repair(step, small, decision.mask))
        if not self.subject.by_name:
            make_own(small, full)
        return small, tuple(steps)

    def _options(self, step: Repair) -> dict[str, Any]:
        """A step's options as the record says them, with the seed it had."""
        plain = to_plain(step)
        return plain | ({"seed": self.seed} if "seed" in plain else {})

    def _calibration(self) -> Any:
        """The rows that a repair looks at: those that were given, or the task's."""
        if self.inputs is None:
            return self.rows("repair")
        inputs = self.inputs
        if isinstance(inputs, EncodedRows):
            self._tell_few(inputs)
        self.used["repair"] = self._given_rows()
        return inputs

    def _given_rows(self) -> JsonDict:
        """The rows that were given, as a record tells them; those of a file were drawn."""
        calibration, used = self.options.calibration, given_rows(self.inputs)
        drawn = isinstance(calibration.rows, str | Path) and calibration.of_file is not None
        return used | ({"seed": self.seed} if drawn else {})

    def _repair(self, step: Repair, small: PreTrainedModel, mask: Mask) -> RepairStep:
        """One step, in a folder of its own where there is one, so that it can be resumed."""
        name, started = repair_name(step), time.monotonic()
        which = digest(str(mask.to_json()), size=6)
        self.say(f"repair: {name}")
        given = RepairInputs(
            calibration=self._calibration,
            task=self.subject.task,
            tokenizer=self.subject.tokenizer,
            device=self.subject.model_options.device,
            seed=self.seed,
            work=None if self.work is None else self.work / f"{name}-{which}-{self.seed}",
            logging=self.logging.named("seed", self.seed),
            report=lambda done, total: self.say(f"repair: {name}, {done} of {total}"),
        )
        report = step.apply(small, self.subject.model, given)
        if step.needs == "training":
            self.used["training"] = used_rows(self.subject.rows_of("train"), "train")
        self.budget.train(examples=report.examples, steps=report.steps, rows=report.rows)
        self.tell(f"repair {name}", report.note)
        task = self.subject.task
        return RepairStep(
            name=name,
            options=self._options(step),
            rows="given" if self.inputs is not None or task is None else task.name,
            steps=report.steps,
            examples=report.examples,
            seconds=round(time.monotonic() - started, 1),
            details=report.details,
        )

    def closed(self, error: AllClosedError, before: Evaluation) -> PruneResult:
        """The result of a run in which all gates closed: no heads, the weights of that moment."""
        assert error.model is not None
        nothing = Mask(self.subject.layout, frozenset())
        after = self.score(error.model, [nothing])
        closed = ClosedGates(
            step=error.step,
            last_open=error.mask.pattern,
            last_open_kept=len(error.mask),
            scored="all heads removed, the weights as they were at that step",
        )
        cutting = replace(self, budget=Budget(steps=error.step))
        result = cutting.result(Decision(mask=nothing), before, after)
        return replace(result, all_closed=closed)

    def tell(self, kind: str, text: str | None) -> None:
        """Note something, once for each kind."""
        if text is not None and kind not in self.noted:
            self.noted.add(kind)
            self.note(text)

    def score(self, model: PreTrainedModel, masks: Sequence[Mask] | None = None) -> Evaluation:
        """A model on the rows that are scored."""
        return self.score_many(model, masks)[0]

    def score_many(
        self, model: PreTrainedModel, masks: Sequence[Mask] | None = None
    ) -> list[Evaluation]:
        """Every mask of a model, in one pass over the rows; without masks the model as it is."""
        scoring = self.options.scoring
        rows = self.subject.scored(scoring)
        tokenizer = self.subject.tokenizer
        return evaluate_rows(model, rows, masks, tokenizer=tokenizer, scoring=scoring)

    def score_masks(self, masks: Sequence[Mask], seeds: Sequence[int]) -> list[Evaluation]:
        """Every mask after the repair; without one, all of them in one pass over the data."""
        if not self.options.repair:
            unique = list(dict.fromkeys(masks))
            by_mask = dict(zip(unique, self.score_many(self.subject.model, unique), strict=True))
            return [by_mask[mask] for mask in masks]
        scores = []
        for mask, seed in zip(masks, seeds, strict=True):
            small, _ = replace(self, seed=seed).cut(Decision(mask=mask))
            scores.append(replace(self.score(small), mask=mask))
        return scores

    def score_full(self) -> Evaluation:
        """The model with all its heads; trained first where its task head is new."""
        if self.subject.fresh and training_of(self.options.repair) is None:
            raise UsageError("A new task head must be trained: pass --finetune.")
        if not self.subject.by_name:  # whoever holds the model may have changed it since
            return self._score_full()
        return self.subject.once(full_key(self.subject, self.options), self._score_full)

    def _score_full(self) -> Evaluation:
        if not self.subject.fresh:
            return self.score(self.subject.model)
        # its training is no part of what this pruning has seen
        whole = replace(self, seed=self.options.scoring.seed, budget=Budget(), used={})
        return self.score(whole.cut(Decision(mask=Mask.full(self.subject.layout)))[0])

    def tell_seen(self) -> None:
        """Note where the method, or what comes after pruning, looks at the rows that are scored."""
        task = self.subject.need_task()
        needs = [step.needs for step in (self.options.method, *self.options.repair)]
        without = ("nothing", "inputs", *(() if self.inputs is None else ("calibration",)))
        if any(need not in without for need in needs):
            scored = {"split": self.options.scoring.split or task.evaluation}
            looked_at = {"split": self.subject.looked_at}
            self.tell("seen", seen_rows({"calibration": looked_at, "evaluation": scored}))

    def notes(self) -> tuple[str, ...]:
        """What a reader of the record must not miss about its rows; told once, as well."""
        shared = shared_rows(self.subject, self.options, self.used, self.seed)
        self.tell("shared", shared)
        doubts = self.subject.doubts(self.options.scoring)
        for doubt in doubts:
            self.tell(doubt, doubt)
        notes = (*self.subject.need_task().notes, *notes_of(self.options.method), *doubts)
        return notes if shared is None else (*notes, shared)

    def free_choice(self, mask: Mask, after: Evaluation) -> FreeChoice:
        """As many heads where layers may differ, repaired and scored like `after`."""
        apart = replace(self, budget=Budget(), used={}, logging=self.logging.named("free"))
        free = apart.score_masks([mask], [self.seed])[0]
        lost = self.difference(free, after)
        return FreeChoice(
            kept=mask.pattern,
            score=EvaluationResult.of(free),
            difference=MetricValue.from_json(lost.to_json()),
            lost=str(lost),
        )

    def difference(self, before: Evaluation, after: Evaluation) -> Difference:
        """What changed between two models on the rows that are scored."""
        scoring = self.options.scoring
        return difference(before, after, bootstrap=scoring.bootstrap, seed=scoring.seed)

    def result(
        self,
        decision: Decision,
        before: Evaluation,
        after: Evaluation,
        repair: tuple[RepairStep, ...] = (),
    ) -> PruneResult:
        """What came out of a prune that was scored."""
        loss = self.difference(before, after)
        self.used["evaluation"] = {
            "split": before.split,
            "n": before.n,
            "seed": None if self.options.scoring.limit is None else self.options.scoring.seed,
            "fingerprint": before.rows,
        }
        scores = PruneScores(
            task=before.task,
            dataset=dataset_of(before.task),
            split=before.split,
            metric=before.scores[0].metric,
            n=before.n,
            before=EvaluationResult.of(before),
            after=EvaluationResult.of(after),
            relative=defined(after.score / before.score) if before.score else None,
            difference=MetricValue.from_json(loss.to_json()),
            lost=str(loss),
        )
        return replace(self.unscored(decision, repair), scores=scores)

    def unscored(self, decision: Decision, repair: tuple[RepairStep, ...] = ()) -> PruneResult:
        """The same without scores: what was asked, how many heads are left, and what it cost."""
        mask, learned = decision.mask, decision.learned
        return PruneResult(
            model=self.subject.name,
            method=self.options.name,
            ratio=self.options.ratio,
            options=self.options.method_options(),
            seed=self.seed,
            samples=None if self.options.calibration.tokens else self.options.calibration.samples,
            heads=HeadCounts(before=len(mask.layout), after=len(mask), kept=mask.pattern),
            repair=repair,
            learned=learned and LearnedResult.from_json(defined(learned.to_json())),
            budget=self.budget.summary(),
            mask=mask,
            rows_text=rows_sentence(self.used),
        )


def full_key(subject: Subject, options: Prune) -> tuple[object, ...]:
    """What the score of the full model depends on, but for the model."""
    return "full", options.scoring, options.repair if subject.fresh else None


def dataset_of(task: str) -> HubDataset | None:
    """The hub's name of a task's data set, where it is one of the hub's."""
    known = LAYOUTS.get(task)
    return None if known is None else HubDataset(id=HUB, task=known.config)
