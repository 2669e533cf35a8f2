"""Prunes that only close gates, scored in one pass over the rows: many masks of one model.

results = prune_together([run, ...], subjects)       # one for each run, in their order
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from headcount.base.errors import HeadcountError
from headcount.pruning.methods import Decision
from headcount.runs.cutting import PruningRun
from headcount.runs.kinds.kind import RunResult
from headcount.runs.kinds.prune import Prune
from headcount.runs.notes import Note, log
from headcount.runs.opening import open_pruned
from headcount.runs.prune import identity_of, log_prune
from headcount.runs.prune_result import PruneResult
from headcount.runs.record import Record
from headcount.runs.run import Run
from headcount.runs.subject import Subjects
from headcount.training.logging import Logging


def share_a_pass(run: Run, other: Run) -> bool:
    """Whether two runs only close gates, and are scored on the same rows of the same model."""
    if not isinstance(run.options, Prune) or not isinstance(other.options, Prune):
        return False
    gated = run.options.gated and other.options.gated
    return gated and _rows_of(run, run.options) == _rows_of(other, other.options)


def _rows_of(run: Run, options: Prune) -> tuple[object, ...]:
    return run.model, run.task, run.source, run.model_options, options.scoring


def prune_together(
    runs: Sequence[Run], subjects: Subjects, note: Note = log
) -> list[RunResult | HeadcountError]:
    """Record and evaluation of every run, or why its heads could not be selected."""
    started = time.monotonic()
    subject = open_pruned(runs[0], subjects)
    prunes = [
        PruningRun(subject=subject, options=run.options_as(Prune), seed=run.seed, note=note)
        for run in runs
    ]
    decisions = [_decision(prune) for prune in prunes]
    before = prunes[0].score_full()
    masks = [decision.mask for decision in decisions if isinstance(decision, Decision)]
    scores = iter(prunes[0].score_masks(masks, [0] * len(masks)) if masks else [])
    seconds = round((time.monotonic() - started) / len(runs), 1)
    results: list[RunResult | HeadcountError] = []
    for run, prune, decision in zip(runs, prunes, decisions, strict=True):
        if isinstance(decision, HeadcountError):
            results.append(decision)
            continue
        after = next(scores)
        record = Record(
            run=run,
            identity=identity_of(subject, prune.options, run.seed),
            result=prune.result(decision, before, after),
            rows=prune.used,
            notes=prune.notes(),
            seconds=seconds,
        )
        results.append(RunResult(record, after))
    return results


def _decision(prune: PruningRun) -> Decision | HeadcountError:
    try:
        return prune.decide()
    except HeadcountError as error:
        return error


def log_record(logging: Logging, record: Record) -> None:
    """A finished prune, to where it is logged."""
    result = record.result_as(PruneResult)
    words = (result.method, result.ratio, "seed", result.seed, "scored")
    log_prune(logging.named(*words), result)
