"""A training, from a run: a model with a head for the task, or one from its config alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headcount.base.files import expanded
from headcount.runs.carriers.common import RunResult, depends_on, name_of, task_of
from headcount.runs.cutting import used_rows
from headcount.runs.kinds import Train
from headcount.runs.notes import Note
from headcount.runs.overlap import keys_of, shared_note, used_keys
from headcount.runs.record import COMMON, Record
from headcount.runs.run import Run
from headcount.runs.subject import Subject
from headcount.tasks.loading import load_for_task, load_tokenizer, require_text
from headcount.tasks.vocabulary import tokenizer_for
from headcount.training.finetune import Report, finetune
from headcount.training.logging import Logging
from headcount.training.processes import is_first
from headcount.training.session import training_rows


def train(
    run: Run, out: str | Path | None, *, report: Report | None, command: str | None,
    overwrite: bool, note: Note, logging: Logging | None = None, **_: Any,
) -> RunResult:  # fmt: skip
    """Train as asked, and put the model and its record where that was asked."""
    asked, subject = run.asked(Train), open_for_training(run)
    task = subject.need_task()
    rows = subject.rows_of("train")
    about = depends_on(run, subject.model, subject.tokenizer, rows=rows)
    about["options"]["training"] = asked.training.identity()
    trained = finetune(
        subject.model, task, options=asked.training, out=out, tokenizer=subject.tokenizer,
        device=run.model_options.device, limit=asked.sample, curve_scores=asked.curve_scores,
        overwrite=overwrite, report=report, logging=logging,
    )  # fmt: skip
    numbers = {name: value for name, value in trained.to_json().items() if name not in COMMON}
    used = used_rows(rows, "train")
    if asked.sample is not None:
        used = used_rows(trained.data, "train", asked.training.seed)
    notes = list(task.notes)
    if trained.evaluation is not None:
        scored = keys_of(task.load(task.evaluation))
        shared = shared_note(used_keys(task, {"trained": used}), scored, "held-out")
        if shared is not None and is_first():
            notes.append(shared)
            note(shared)
    last = [point["loss"] for point in trained.curve if "loss" in point][-1:]
    record = Record(
        run=run, identity=about, command=command, seconds=round(trained.seconds, 1),
        result={
            "model": run.model, "task": task.name, **numbers,
            "rows_trained": trained.rows, "last_loss": last[0] if last else None,
        },
        rows={"trained": used}, notes=tuple(notes),
    )  # fmt: skip
    if out is not None and is_first():
        record.save(expanded(out))
    return RunResult(record, trained)


def plan(run: Run) -> dict[str, Any]:
    """What would be trained, on how much, and how."""
    subject, asked = open_for_training(run), run.asked(Train)
    task, options = subject.need_task(), asked.training
    rows = training_rows(subject.model, task, subject.tokenizer, options, asked.sample)
    steps = options.steps or round(-(-len(rows) // options.batch_size) * options.epochs)
    return {
        "class": type(subject.model).__name__,
        "task": task.name,
        "rows": len(rows),
        "tokens": int(rows.lengths.sum()),
        "steps": steps,
        "options": options.to_json(),
    }


def open_for_training(run: Run) -> Subject:
    """The model of a training run, with a head for the task, or from its config alone."""
    asked, task, name = run.asked(Train), task_of(run), name_of(run)
    require_text(name)
    new = tokenizer_for(task, asked.new_tokenizer) if asked.new_tokenizer is not None else None
    tokenizer = new if new is not None else load_tokenizer(run.model_options.tokenizer or name)
    model = load_for_task(
        name, task, from_scratch=asked.from_scratch, new_tokenizer=new,
        seed=asked.training.seed, **run.model_options.loading,
    )  # fmt: skip
    return Subject(
        model=model, tokenizer=tokenizer, task=task, name=name, source=run.source,
        model_options=run.model_options,
    )  # fmt: skip
