"""A cut, from a run: with the heads taken out, or with their gates closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headcount.learned.keeper import AllClosedError
from headcount.runs.asked import Prune
from headcount.runs.carriers.common import RunOutput, RunResult, open_run
from headcount.runs.cutting import PruningRun
from headcount.runs.notes import Note, rows_sentence
from headcount.runs.prune import Report, identity_of
from headcount.runs.prune import prune as cut
from headcount.runs.run import Run
from headcount.runs.subject import Subjects
from headcount.training.logging import Logging


def prune(
    run: Run, out: str | Path | None, *, report: Report | None, note: Note, command: str | None,
    overwrite: bool, subjects: Subjects | None = None, work: Path | None = None,
    logging: Logging | None = None, may_close: bool = False, **_: Any,
) -> RunResult | RunOutput:  # fmt: skip
    """A cut; `may_close` takes a free run in which all gates close for a result like others."""
    asked = run.asked(Prune)
    subject = open_run(run, subjects, trains=any(step.needs == "training" for step in asked.repair))
    cutting = PruningRun(subject=subject, asked=asked, seed=run.seed, note=note)
    if asked.gated:
        decision, before = cutting.decide(), cutting.score_full()
        after = cutting.score(subject.model, [decision.mask])
        result = cutting.result(decision, {}, before, after)
        result["rows_said"] = rows_sentence(cutting.used)
        return RunOutput(result, identity_of(subject, asked, run.seed), cutting.used, decision.mask,
                    cutting.notes())  # fmt: skip
    try:
        found = cut(
            subject, asked.method, asked.ratio, repair=asked.repair, learning=asked.learning,
            calibration=asked.calibration, scoring=asked.scoring, baseline=asked.baseline,
            seed=run.seed, out=out, work=work, logging=logging, report=report, note=note,
            command=command, overwrite=overwrite,
        )  # fmt: skip
    except AllClosedError as error:
        if not may_close:
            raise
        result = cutting.closed(error, cutting.score_full())
        return RunOutput(result, identity_of(subject, asked, run.seed), cutting.used, None)
    return RunResult(found.record, found)
