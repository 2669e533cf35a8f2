"""An evaluation, from a run: with all heads and with masks."""

from __future__ import annotations

from typing import Any

from headcount.heads import Mask
from headcount.runs.carriers.common import RunOutput, depends_on, mask_of, open_run
from headcount.runs.kinds import Evaluate
from headcount.runs.notes import Note, log
from headcount.runs.run import Run
from headcount.runs.subject import Subjects
from headcount.training.doubts import doubts_about
from headcount.training.evaluate import evaluate_rows
from headcount.training.evaluation import differences


def evaluate(
    run: Run, out: object, *, note: Note = log, subjects: Subjects | None = None, **_: Any
) -> RunOutput:
    """Score all heads, and every mask that is asked for; all of it is in the record."""
    asked, subject = run.asked(Evaluate), open_run(run, subjects)
    rows = subject.scored(asked.scoring)
    masks = None
    if asked.masks:
        heads = subject.layout
        masks = [Mask.full(heads), *(mask_of(text, subject) for text in asked.masks)]
    found = evaluate_rows(
        subject.model, rows, masks, tokenizer=subject.tokenizer, scoring=asked.scoring,
        tokens=asked.tokens, beams=asked.beams,
    )  # fmt: skip
    lost = differences(found, asked.scoring)
    doubts = doubts_about(found[0], rows, subject.tokenizer, asked.scoring)
    for doubt in doubts:
        note(doubt)
    result = found[0].to_json() | {"model": run.model, "seed": asked.scoring.seed}
    if masks:
        result["masks"] = [
            each.to_json() | {"differences": {one.metric: one.to_json() for one in changes}}
            for each, changes in zip(found[1:], lost, strict=True)
        ]
    scored = {"split": rows.split, "n": found[0].n, "seed": asked.scoring.seed}
    about = depends_on(run, subject.model, subject.tokenizer, scored=rows.fingerprint)
    used = {"scored": scored | {"fingerprint": rows.fingerprint}}
    return RunOutput(result, about, used, (found, lost), (*subject.need_task().notes, *doubts))


def plan(run: Run) -> dict[str, Any]:
    """What would be scored, on how many rows."""
    subject = open_run(run)
    rows = len(subject.scored(run.asked(Evaluate).scoring))
    return {"class": type(subject.model).__name__, "task": run.task, "rows": rows}
