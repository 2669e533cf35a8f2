"""How many heads does it need? `hc.search(model, "mrpc", max_drop="1%", out="found")`.

The fewest heads within a stated loss, by bisection over head counts; or the best score within a
budget of time, parameters or cache; or the knee of the curve. The selection
set and the held-out set share no rows. Every pruning that is tried is kept in the folder: the same
call again resumes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.base.names import split_words
from headcount.base.options import defined, to_plain
from headcount.models.find import sites_of
from headcount.pruning.methods import AnyMethod, Method, as_method, name_of
from headcount.repair.finetune import training_of
from headcount.repair.recover import Recover
from headcount.repair.repairs import Repair, Repairs, as_repairs
from headcount.runs.identity import identity
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import Note, log
from headcount.runs.overlap import scored_keys, shared_note
from headcount.runs.prune import run_of
from headcount.runs.run import Run
from headcount.runs.subject import Subject
from headcount.studies.executors.protocol import ExecutorOptions
from headcount.studies.opened import OpenStudy
from headcount.studies.prunes import PruneStudy, open_study, told_once
from headcount.studies.search.answers import SearchRequest, answer_of, no_answer
from headcount.studies.search.bounds import MaxDrop, read_bound
from headcount.studies.search.bracket import fewest
from headcount.studies.search.budgets import within_budget
from headcount.studies.search.details import FOLDER, add_details
from headcount.studies.search.estimate import SearchResult
from headcount.studies.search.judging import BoundVerdict, Cut, Judge, rows_line
from headcount.studies.search.kept import FULL, RESULTS, keep_answer, kept_answer
from headcount.studies.search.knee import find_knee, worth_of
from headcount.studies.search.options import (
    METHODS_TRIED,
    SearchOptions,
    check_context,
    check_methods,
    quickened,
)
from headcount.studies.search.pace import estimate, pace_of
from headcount.studies.search.trials import Candidate, Trials, candidate_plan
from headcount.tasks.calibration import Calibration
from headcount.tasks.kinds import task_kind
from headcount.tasks.metrics import get_metric, too_few
from headcount.tasks.parts import half_name
from headcount.tasks.task import Task
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring

LEAST = 8
"""Rows of the selection set, and of the held-out set, at least."""
Report = Callable[[str], None]


def search(
    model: Subject | PreTrainedModel | str,
    task: Task | str | None = None,
    methods: Sequence[AnyMethod] = METHODS_TRIED,
    *,
    max_drop: str | float | None = None,
    max_latency: str | float | None = None,
    max_parameters: str | float | None = None,
    max_cache: str | float | None = None,
    uniform: bool = False,
    tokenizer: PreTrainedTokenizerBase | None = None,
    repair: Repair | str | Sequence[Repair | str] | None = None,
    learning: TrainOptions | None = None,
    calibration: Calibration | None = None,
    scoring: Scoring | None = None,
    search_options: SearchOptions | None = None,
    baseline: int = 3,
    details: bool = True,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    executor_options: ExecutorOptions | None = None,
    command: str | None = None,
    report: Report | None = None,
    note: Note = log,
) -> SearchResult:
    """The fewest heads within a bound, their score on the held-out set, and the model.

    One bound at most: `max_drop` is a loss in score ("1%" of the full model's, 0.01, 0), the
    others are budgets ("0.8x"; "12ms", "20M", bytes a token). `uniform` keeps as many
    key-value heads in every layer of a stack. `repair` is what follows every
    pruning: recovery where nothing is said, and no method trains gates (`learning` says how those
    do). `scoring` has the split that is drawn into selection set and held-out set, and
    `search_options` how. `seed` is that of everything random, unless `scoring` is given. In `out`:
    search.json, the model, a record of every pruning, and with `details` what the page says of
    every head: importance, roles, and attention in one example. `executor_options` says where
    prunings are executed: one after the other in this process when left out. `report` is called
    with what is being done, `note` with what must not be missed.
    """
    bound = read_bound(max_drop, max_latency, max_parameters, max_cache)
    chosen = [as_method(item) for item in methods]
    check_methods([name_of(item) for item in chosen], bound)
    steps = None if repair is None else as_repairs(repair)
    trains = any(step.needs == "training" for step in steps or ())
    search_options, scoring = search_options or SearchOptions(), scoring or Scoring(seed=seed)
    check_context(search_options.context, bound)
    subject = open_study(model, task, tokenizer, trains=trains, seed=seed)
    steps = usual_repair(subject, chosen, note) if steps is None else steps
    selection, held_out = rows_to_search(subject, scoring, search_options)
    if isinstance(bound, MaxDrop):
        require_rows(subject, selection)
    like = Prune(
        method=chosen[0],
        uniform=uniform,
        repair=steps,
        learning=learning,
        calibration=calibration or Calibration(),
        scoring=selection,
        baseline=baseline,
    )
    note, notes = told_once(note), subject.need_task().notes
    if search_options.quick:
        counts = [len(subject.scored(item)) for item in (selection, held_out)]
        search_options, like, held_out, left_out = quickened(
            search_options, like, held_out, max(counts)
        )
        note(left_out)
        notes += (left_out,)
    keys = [scored_keys(subject, rows) for rows in (like.scoring, held_out)]
    shared = shared_note({"selection": keys[0]}, keys[1], "held-out")
    if shared is not None:
        note(shared)
        notes += (shared,)
    for doubt in subject.doubts(like.scoring):
        note(doubt)
        notes += (doubt,)
    request = SearchRequest(
        subject=subject,
        methods=tuple(chosen),
        bound=bound,
        like=like,
        held_out=held_out,
        search_options=search_options,
        seed=seed,
        command=command,
        report=report or (lambda text: None),
        note=note,
        notes=notes,
        details=details,
    )
    return answered(request, out, executor_options, overwrite=overwrite)


def answered(
    request: SearchRequest,
    out: str | Path | None,
    executor_options: ExecutorOptions | None = None,
    *,
    overwrite: bool = False,
) -> SearchResult:
    """The answer, from the folder where it is there already, else made and written there."""
    started, like = time.monotonic(), run_of(request.subject, request.like)
    candidates = first_candidates(request)
    study = PruneStudy(
        subject=request.subject,
        like=request.like,
        about=about_search(request),
        plan=candidate_plan(like, *candidates),
        out=out,
        overwrite=overwrite,
        executor_options=executor_options or ExecutorOptions(),
        command=request.command,
        note=request.note,
        grows=True,
        full_file=FULL,
    )
    with study.opened((*RESULTS, FOLDER)) as opened:
        folder = None if out is None else opened.folder
        result = kept_answer(request, folder, opened.id)
        if result is None:
            result = _search(request, opened, like)
            data = defined(dict(result.data) | {"seconds": round(time.monotonic() - started, 1)})
            data["out"] = None if out is None else str(out)
            result = keep_answer(replace(result, data=data), folder, opened.id)
        if folder is not None and request.details:
            add_details(request, result, folder)
        return result


def usual_repair(subject: Subject, methods: Sequence[Method], note: Note) -> Repairs:
    """Recovery, where it can be: what is trained has nothing to recover towards."""
    if subject.fresh or any(method.needs == "training" for method in methods):
        return ()
    if any(site.twins for site in sites_of(subject.model)):
        note("Layers of this model share their weights, so nothing is recovered after pruning.")
        return ()
    return (Recover(),)


def rows_to_search(
    subject: Subject, scoring: Scoring, search_options: SearchOptions
) -> tuple[Scoring, Scoring]:
    """The selection set and the held-out set, which share no rows."""
    task = subject.need_task("A search scores pruned models: pass a task.")
    if not scoring.bootstrap:
        raise UsageError("A search needs probabilities, and so resamples: pass --bootstrap 1000.")
    split, other = scoring.split or task.evaluation, search_options.selection_split
    if other is None:
        names = [
            half_name(split, side, search_options.held_out, scoring.seed)
            for side in ("selection", "held-out")
        ]
    elif other == split:
        raise UsageError(
            f"The selection set and the held-out set are both '{split}': name another "
            "--selection-split or --split, or leave --selection-split out to draw halves."
        )
    else:
        names = [other, split]
    selection, held_out = (replace(scoring, split=name) for name in names)
    for rows in (selection, held_out):
        count = len(subject.scored(rows))
        if count < LEAST:
            raise UsageError(
                f"Task '{task.name}' has too few rows to search on: {count} in "
                f"{split_words(rows.split)}, and each of the two sets needs at least "
                f"{LEAST}. Name two splits with --selection-split and --split, or give more "
                "rows."
            )
    if other is not None and subject.scored(selection).fingerprint == (
        subject.scored(held_out).fingerprint
    ):
        raise UsageError(f"The splits '{other}' and '{split}' have the same rows.")
    return selection, held_out


def require_rows(subject: Subject, selection: Scoring) -> None:
    """Refuse a selection set on which no loss has a probability, and so nothing is accepted."""
    metric = subject.need_task().metric
    if few := too_few(get_metric(metric), len(subject.scored(selection))):
        raise UsageError(
            f"A loss in {metric} has no probability on {split_words(selection.split)}: {few}. Give "
            "more rows, with a higher --limit or a smaller --held-out."
        )


def about_search(request: SearchRequest) -> dict[str, Any]:
    """What a search depends on."""
    learning = request.like.learning
    return identity(
        request.subject,
        request.like,
        request.methods,
        learning=learning.identity() if request.trains_gates and learning is not None else None,
        searched=[name_of(method) for method in request.methods],
        bound=None if request.bound is None else str(request.bound),
        held_out=request.held_out.split,
        held_out_rows=request.subject.rows_of(str(request.held_out.split)),
        search=to_plain(request.search_options),
        baseline=request.like.baseline,
        first_seed=request.seed,
    )


def first_candidates(request: SearchRequest) -> list[Candidate]:
    """All heads by every method: what the full model is scored for, and what is refused first."""
    heads = len(request.subject.layout)
    return [request.cut(method)(heads, request.seed) for method in request.methods]


def _search(request: SearchRequest, study: OpenStudy, like: Run) -> SearchResult:
    """The result of a search, pruning by pruning."""
    slow = training_of(request.like.repair) is not None or request.trains_gates
    trials = Trials(
        study=study,
        like=like,
        report=request.report,
        # beside a training the rows cost nothing
        first_rows=10**9 if slow else request.search_options.first_rows,
    )
    metric = get_metric(request.subject.need_task().metric)
    judge = Judge(
        trials=trials,
        bound=request.bound if isinstance(request.bound, MaxDrop) else None,
        search_options=request.search_options,
        seed=request.seed,
        sign=1.0 if metric.higher_is_better else -1.0,
    )
    heads, folder = len(request.subject.layout), None if study.of.out is None else study.folder
    request.report("scoring all heads")
    held_out = len(request.subject.scored(request.held_out))
    trials.pace = pace_of(request, trials.full, len(trials.rows), held_out)
    request.note(estimate(trials.pace, heads, request.search_options.quick))
    if isinstance(request.bound, MaxDrop):
        # a full model that is compared with itself is the same in every row: it tells of no other
        if not task_kind(request.subject.need_task().kind).compares:
            line = rows_line(trials.full, request.bound, request.search_options.confidence)
            request.note(line)
            request = replace(request, notes=(*request.notes, line))
        best = _within_drop(request, judge)
        return (
            no_answer(request, judge) if best is None else answer_of(request, judge, best, folder)
        )
    if request.bound is not None:
        return within_budget(request, judge, folder, request.bound)
    return answer_of(request, judge, _at_the_knee(request, judge), folder, by="knee")


def _at_the_knee(request: SearchRequest, judge: Judge) -> BoundVerdict:
    """The knee of the method whose curve bends most."""
    layout, task = request.subject.layout, request.subject.need_task()
    higher = get_metric(task.metric).higher_is_better
    candidates: list[tuple[float, BoundVerdict]] = []
    for method in request.methods:
        cut = request.cut(method)
        counts = request.counts(method)

        def worth(kept: int, cut: Cut = cut) -> float:
            score = judge.trials.full.score
            if kept < len(layout):
                score = judge.judge(cut, kept).tried[0]["score"]
            return worth_of(score, task.metric, higher)

        kept, above = find_knee(counts, len(layout), worth)
        candidates.append((above, judge.judge(cut, kept)))
    return max(candidates, key=lambda item: item[0])[1]


def _within_drop(request: SearchRequest, judge: Judge) -> BoundVerdict | None:
    """The fewest heads of any method, confirmed on the whole selection set."""
    answers: list[BoundVerdict] = []
    for method in request.methods:
        cut = request.cut(method)
        counts = request.counts(method)

        def enough(kept: int, cut: Cut = cut) -> bool:
            return judge.judge(cut, kept).accepted

        # a count that the first rows accepted and all rows do not is asked for no more
        while (kept := fewest(counts, enough)) is not None:
            verdict = judge.judge(cut, kept, thorough=True)
            if verdict.accepted:
                answers.append(verdict)
                break
    return min(answers, key=lambda item: (item.kept, -item.within.probability), default=None)
