"""All of it, once: `hc.prune(model, ratio=0.5, task="sst2", out="small")`.

Decides which heads stay, removes the others, recovers or fine-tunes, scores before and after and
beside random prunings of the same size, and writes a folder: model, mask.json, record.json, card;
and gates.npz, the trace of the gates, where a method trains them. A call that was killed goes on
where it was when it is made again; one that was finished gives what it wrote.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.files import expanded
from headcount.base.outputs import require_apart
from headcount.heads import Mask
from headcount.learned.trace import Trace
from headcount.pruning.function import notes_of
from headcount.pruning.methods import AnyMethod
from headcount.pruning.select import prepare
from headcount.repair.finetune import training_of, with_training
from headcount.repair.repairs import Repair, as_repairs
from headcount.runs.advice import choose
from headcount.runs.budget import Budget, together
from headcount.runs.cutting import PruningRun
from headcount.runs.folder import finished, require_free, work_of, workspace, write_folder
from headcount.runs.identity import identity as identity_of_study
from headcount.runs.kinds.kind import RunContext
from headcount.runs.kinds.prune import Prune, Ratio
from headcount.runs.notes import Note, log, not_better, seen_rows
from headcount.runs.prune_result import ParameterCounts, PruneResult, RandomBaseline
from headcount.runs.record import Record
from headcount.runs.run import Run
from headcount.runs.subject import Subject, make_subject
from headcount.statistics import deviation
from headcount.tasks.calibration import Calibration
from headcount.tasks.metrics import ends
from headcount.tasks.task import Task
from headcount.training.evaluation import Evaluation
from headcount.training.logging import Logging
from headcount.training.options import TrainOptions
from headcount.training.processes import is_first, wait_for_all
from headcount.training.scoring import Scoring
from headcount.training.tracker import log_run

Report = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class PruneOutput:
    """A smaller model, which heads it has, and the record of how it came to be."""

    model: PreTrainedModel
    mask: Mask
    record: Record
    trace: Trace | None = None
    """What the gates did, where the method trained them."""
    scored: tuple[Evaluation, Evaluation] | None = None
    """Before and after, row by row, where they were scored by this call."""

    def __repr__(self) -> str:
        return f"PruneOutput({type(self.model).__name__}, {self.mask!r:.60})"


def prune(
    model: Subject | PreTrainedModel | str,
    method: AnyMethod | None = None,
    ratio: Ratio = None,
    *,
    task: Task | str | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
    uniform: bool = False,
    repair: Repair | str | Sequence[Repair | str] | None = None,
    learning: TrainOptions | None = None,
    calibration: Calibration | None = None,
    scoring: Scoring | None = None,
    baseline: int = 3,
    seed: int = 0,
    out: str | Path | None = None,
    work: str | Path | None = None,
    overwrite: bool = False,
    command: str | None = None,
    report: Report | None = None,
    note: Note = log,
    logging: Logging | None = None,
) -> PruneOutput:
    """Cut a model, repair it if asked, score it, and write it if asked.

    `method` is a name of `headcount ls methods` or a value, as in `hc.Importance(step=0.05)`, or a
    function (model, calibration rows, ratio) -> mask; without one it is the surgeon with recovery
    where there is a task, and cluster where there is none. `ratio` is the share of heads to remove;
    "free" lets a method that can decide. `uniform` keeps as many key-value heads in every layer of
    a stack, for `export --to stock`. `repair` is what comes after pruning, one step or several
    in order: names of `headcount ls repairs` or values, as in `(hc.Recover(),
    hc.Finetune(steps=200))`. `learning` is how a method that trains gates does so, before pruning
    (without it such a method has the training of the repair, with its gates, and none after);
    random prunings then train as long after it. `baseline` is the number of random prunings of the
    same size, repaired in the same way. `seed` is that of the pruning, of its training and of the
    sample that is scored, unless `scoring` is given. `overwrite` replaces a pruned model in `out`.
    `work`, in its place, is a folder for the caller to delete: a killed call goes on there.
    `report` is called with what is being done, `note` with what must not be missed, which is also
    in the record, beside the `command`. `logging` says which trackers are told of training and
    scores. Without a task nothing is scored.
    """
    steps = None if repair is None else as_repairs(repair)
    trains = any(step.needs == "training" for step in steps or ())
    subject = make_subject(model, task, tokenizer=tokenizer, trains=trains, seed=seed)
    choice = choose(method, steps, task=subject.task is not None, fresh=subject.fresh)
    options = Prune(
        method=choice.method,
        ratio=ratio,
        uniform=uniform,
        repair=choice.repair,
        learning=learning,
        calibration=calibration or Calibration(),
        scoring=scoring or Scoring(seed=seed),
        baseline=baseline,
    )
    context = RunContext(
        out=out,
        work=None if work is None else expanded(work),
        overwrite=overwrite,
        command=command,
        report=report,
        note=note,
        logging=logging,
    )
    return prune_subject(subject, options, seed, context, choice.note)


def prune_subject(
    subject: Subject,
    options: Prune,
    seed: int = 0,
    context: RunContext | None = None,
    advice: str | None = None,
) -> PruneOutput:
    """Prune a subject as the options say; `advice` is what was decided for the user, for notes."""
    context = context or RunContext()
    trained = options.method.needs == "training"
    learning = options.learning if trained else None
    if trained and learning is None and training_of(options.repair) is None:
        learning = TrainOptions()  # else gates have the training of the repair
    options = replace(options, learning=learning)
    options.share  # refused before anything is measured  # noqa: B018
    target = None if context.out is None else expanded(context.out)
    work = context.work if context.work is not None else target and work_of(target)
    if target is not None and is_first():
        require_free(target, overwrite=context.overwrite)
        files = run_of(subject, options, seed).files
        require_apart(target, files, overwrite=context.overwrite)
    notes = [*notes_of(options.method), *(() if subject.task is None else subject.task.notes)]

    def keep_note(text: str) -> None:
        notes.append(text)
        context.note(text)

    logging = context.logging or Logging()
    pruning = PruningRun(
        subject=subject,
        options=options,
        seed=seed,
        note=keep_note,
        say=context.report or (lambda text: None),
        work=work,
        logging=logging.named(target and target.name, options.name, options.ratio),
    )
    identity = identity_of(subject, options, seed)
    if advice is not None:
        keep_note(advice)
    if target is not None and not context.overwrite:
        earlier = finished(target, identity, context.note)
        if earlier is not None:
            return PruneOutput(*earlier)
    held = nullcontext()
    if work is not None and is_first():
        held = workspace(work, identity, context.note, where=target, overwrite=context.overwrite)
    with held:
        output = _Cut(pruning).make(identity, notes, context.command)
        if target is not None:
            output = replace(output, record=_write(target, output, subject.tokenizer))
    return output


def _write(target: Path, output: PruneOutput, tokenizer: PreTrainedTokenizerBase | None) -> Record:
    record = output.record
    if is_first():
        record = write_folder(target, record, output.model, output.mask, tokenizer, output.trace)
    wait_for_all()  # one of several processes may still read what the gates left
    return record


def run_of(subject: Subject, options: Prune, seed: int = 0) -> Run:
    """The prune as a run: a value that can be executed again."""
    task = None if subject.task is None else subject.task.name
    return Run(
        "prune",
        subject.name,
        task=task,
        source=subject.source,
        model_options=subject.model_options,
        seed=seed,
        options=options,
    )


def identity_of(subject: Subject, options: Prune, seed: int) -> dict[str, Any]:
    """Everything that one pruning depends on."""
    learning = options.learning
    more: dict[str, object] = {
        "method": options.name,
        "ratio": options.ratio,
        "baseline": options.baseline,
    }
    if options.method.needs == "training" and learning is not None:
        more["learning"] = learning.identity()
    if options.gated:
        more["gated"] = True
    same = identity_of_study(subject, options, [options.method], seed=seed, **more)
    return same | {"cut_seed": seed}


@dataclass(frozen=True)
class _Cut:
    """One pruning under way."""

    cutting: PruningRun

    def make(self, about: dict[str, Any], notes: list[str], command: str | None) -> PruneOutput:
        """Decide, remove, repair and score, and put it on record."""
        cutting, options, started = self.cutting, self.cutting.options, time.monotonic()
        cutting.say(f"choosing heads: {options.name}")
        decision = cutting.decide()
        mask, learned = decision.mask, decision.learned
        cutting.say(f"removing {len(mask.dropped)} of {len(mask.layout)} heads")
        small, repair_steps = cutting.cut(decision)
        full = cutting.subject.model
        sizes = ParameterCounts(before=full.num_parameters(), after=small.num_parameters())
        trace = None if learned is None else learned.trace
        scored: tuple[Evaluation, Evaluation] | None = None
        if cutting.subject.task is None:
            result = cutting.unscored(decision, repair_steps)
        else:
            cutting.say("scoring")
            compared = cutting
            if learned is not None:
                # random prunings get after pruning what the gates and weights got before it
                longer = training_of(options.repair)
                if options.learning is not None:
                    longer = together(options.learning, longer)
                assert longer is not None  # the gates were trained by one of the two
                repair = with_training(options.repair, longer)
                compared = replace(cutting, options=replace(options, repair=repair))
            before, after = scored = compared.score_full(), cutting.score(small)
            result = cutting.result(decision, before, after, repair_steps)
            assert result.scores is not None
            random = self._random(compared, mask, after)
            free = decision.free and compared.free_choice(decision.free, after)
            scores = replace(result.scores, random=random, free=free)
            result = replace(result, scores=scores)
            cutting.tell("seen", seen_rows(cutting.used))
            cutting.notes()
            if is_first():
                log_prune(cutting.logging.named("seed", cutting.seed, "scored"), result)
        record = Record(
            run=run_of(cutting.subject, options, cutting.seed), identity=about, command=command,
            result=replace(result, parameters=sizes), rows=cutting.used, notes=tuple(notes),
            seconds=round(time.monotonic() - started, 1),
        )  # fmt: skip
        return PruneOutput(small, mask, record, trace, scored)

    def _random(self, cutting: PruningRun, mask: Mask, after: Evaluation) -> RandomBaseline | None:
        """Random prunings of the same number of heads, repaired alike."""
        count, metric = cutting.options.baseline, after.scores[0].metric
        if not count or not mask.dropped:
            return None
        draw = prepare(cutting.subject.layout, "random", uniform=cutting.options.uniform)
        seeds = [cutting.seed + 1 + number for number in range(count)]
        masks = [draw(mask.sparsity, seed) for seed in seeds]
        drawn = replace(cutting, budget=Budget(), used={}, logging=cutting.logging.named("random"))
        evaluations = drawn.score_masks(masks, seeds)
        values = [evaluation.score for evaluation in evaluations]
        beaten = None
        if cutting.options.name != "random":
            complaint = not_better(after.score, values, metric)
            beaten = complaint is None
            cutting.tell("random", complaint)
        spent = drawn.budget
        one = Budget(spent.measured // count, spent.examples // count, spent.steps // count)
        return RandomBaseline(
            draws=count,
            mean=float(np.mean(values)),
            sd=deviation(values) if count > 1 else None,
            **ends(values, metric),
            scores=tuple(values),
            kept=tuple(mask.pattern for mask in masks),
            budget=replace(one, rows=spent.rows).summary(),
            beaten=beaten,
        )


def log_prune(logging: Logging, result: PruneResult) -> None:
    """A finished prune, to where it is logged."""
    scores = result.scores
    assert scores is not None
    about = {name: getattr(result, name) for name in ("model", "method", "ratio", "seed")}
    about["repair"] = ", ".join(step.name for step in result.repair)
    about |= {name: getattr(scores, name) for name in ("task", "split", "metric")}
    numbers = {
        "score": scores.after.score,
        "full": scores.before.score,
        "difference": scores.difference.value,
        "kept": result.heads.after,
    }
    log_run(logging, about, numbers)
