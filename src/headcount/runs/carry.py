"""Carry out a run, whatever its kind: `hc.run(hc.load_record("small").run, "again")`.

A run whose model is another run finds that one's result in the store by its key, or makes it
first, once: the store is a folder with a folder for each run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headcount.errors import UsageError
from headcount.files import read_text
from headcount.heads import Mask
from headcount.learned.keeper import AllClosedError
from headcount.models import fingerprint
from headcount.models.numbers import read_mask
from headcount.options import to_plain
from headcount.runs.contents import content_of
from headcount.runs.cutting import Cutting, used_rows
from headcount.runs.identity import computed, told
from headcount.runs.notes import Note, log, rows_sentence
from headcount.runs.probe import probe
from headcount.runs.products import MODELS, on_inputs, target_of
from headcount.runs.prune import identity_of, prune
from headcount.runs.record import COMMON, FILE, Record
from headcount.runs.run import Run
from headcount.runs.subject import Subject, Subjects, make_subject
from headcount.tasks import TASKS, Task
from headcount.tasks.encoding import Encoded, rows_fingerprint
from headcount.training.processes import is_first

RUNS = "runs"
"""The folder of runs that others start from."""
Report = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Carried:
    """A finished run: its record, and what came out as the library's own value."""

    record: Record
    value: Any


def run(
    asked: Run,
    out: str | Path | None = None,
    *,
    store: str | Path | None = None,
    overwrite: bool = False,
    command: str | None = None,
    report: Report | None = None,
    note: Note = log,
) -> Record:
    """Do what a run asks and give its record; what there is to write goes to `out`.

    `store` is where runs that this one starts from are found and kept: beside `out` when left out.
    `report` and `note` are those of the function that does the work.
    """
    how: dict[str, Any] = {"store": store, "overwrite": overwrite, "command": command}
    return carry(asked, out, report=report, note=note, **how).record


def carry(
    run: Run,
    out: str | Path | None = None,
    *,
    store: str | Path | None = None,
    overwrite: bool = False,
    command: str | None = None,
    report: Report | None = None,
    note: Note = log,
    **more: Any,
) -> Carried:
    """As `run`, with the value that came out; `more` is for the kind that understands it."""
    if run.inputs:
        run = on_inputs(run, lambda each: _made(each, out, store, note))
    started = time.monotonic()
    how: dict[str, Any] = {"overwrite": overwrite, "command": command, "note": note, **more}
    if run.kind == "probe":
        return Carried(probe(run), None)
    found = _CARRIERS[run.kind](run, out, report=report, **how)
    if isinstance(found, Carried):
        return found
    result, identity, rows, value = found
    result = {name: each for name, each in result.items() if name not in COMMON}
    record = Record(
        run=run, identity=identity, result=result, rows=rows, command=command,
        seconds=round(time.monotonic() - started, 1),
    )  # fmt: skip
    return Carried(record, value)


def _made(run: Run, out: Any, store: Any, note: Note) -> Path:
    """The folder of a run that another one starts from, made where it is not there.

    One that is there is asked whether it was made from the same weights and rows.
    """
    if store is None:
        if out is None:
            raise UsageError("A run that starts from another run needs a folder: pass out.")
        store = Path(out).expanduser().parent / RUNS
    folder = Path(store).expanduser() / run.key
    if run.kind not in MODELS and (folder / FILE).is_file():
        return folder  # its key has the content of all that it was measured on
    record = carry(run, target_of(run, folder), store=store, note=note).record
    if not (folder / FILE).is_file():
        record.save(folder)
    return folder


def open_run(run: Run, subjects: Subjects | None = None, *, trains: bool = False) -> Subject:
    """What a run is about, opened, or as it was opened for an earlier run that named the same."""
    assert isinstance(run.model, str)
    name = run.model
    how: Any = {"source": run.source, "opening": run.opening, "trains": trains, "seed": run.seed}

    def opened() -> Subject:
        return make_subject(name, None if run.task is None else _task(run), **how)

    if subjects is None:
        return opened()
    parts = (name, content_of(name), run.task, run.source, run.opening, trains and run.seed)
    return subjects.get(repr(parts), opened)


def _task(run: Run) -> Task:
    if run.task is None:
        raise UsageError(f"A run of the kind '{run.kind}' needs a task: pass --task.")
    return TASKS[run.task](run.source)


def _depends(run: Run, model: PreTrainedModel, tokenizer: Any, **more: Any) -> dict[str, Any]:
    """What a measurement depends on: what was asked, the rows by content, and the model."""
    assert isinstance(run.model, str)
    asked = computed(Subject(model=model, name=run.model))
    asked |= {"kind": run.kind, "task": run.task, "options": to_plain(run.options), **more}
    return asked | fingerprint.identity(model, tokenizer)


def _prune(
    run: Run, out: Any, *, report: Any, note: Note, command: Any, overwrite: bool,
    subjects: Subjects | None = None, work: Path | None = None, logging: Any = None,
    may_close: bool = False,
) -> Carried | tuple[Any, ...]:  # fmt: skip
    """A cut; `may_close` takes a free run in which all gates close for a result like others."""
    asked = run.options
    subject = open_run(run, subjects, trains=asked.repair.train is not None)
    cutting = Cutting(subject=subject, asked=asked, seed=run.seed, note=note)
    if not asked.gated:
        try:
            found = prune(
                subject, asked.method, asked.ratio, repair=asked.repair, learning=asked.learning,
                looking=asked.looking, scoring=asked.scoring, baseline=asked.baseline,
                seed=run.seed, out=out, work=work, logging=logging, report=report, note=note,
                command=command, overwrite=overwrite,
            )  # fmt: skip
        except AllClosedError as error:
            if not may_close:
                raise
            result = cutting.closed(error, cutting.score_full())
            return result, identity_of(subject, asked, run.seed), cutting.used, None
        return Carried(found.record, found)
    decision, before = cutting.decide(), cutting.score_full()
    after = cutting.score(subject.model, [decision.mask])
    result = cutting.result(decision, {}, before, after)
    result["rows_said"] = rows_sentence(cutting.used)
    return result, identity_of(subject, asked, run.seed), cutting.used, decision.mask


def _train(
    run: Run, out: Any, *, report: Any, command: Any, overwrite: bool, logging: Any = None, **_: Any
) -> Carried:
    from headcount.training.finetune import finetune

    asked, subject = run.options, open_for_training(run)
    task = subject.need_task()
    rows = subject.rows_of("train")
    about = _depends(run, subject.model, subject.tokenizer, rows=rows)
    about["options"]["training"] = asked.training.identity()
    trained = finetune(
        subject.model, task, options=asked.training, out=out, tokenizer=subject.tokenizer,
        device=run.opening.device, limit=asked.sample, curve_scores=asked.curve_scores,
        overwrite=overwrite, report=report, logging=logging,
    )  # fmt: skip
    numbers = {name: value for name, value in trained.to_json().items() if name not in COMMON}
    last = [point["loss"] for point in trained.curve if "loss" in point][-1:]
    record = Record(
        run=run, identity=about, command=command, seconds=round(trained.seconds, 1),
        result={
            "model": run.model, "task": task.name, **numbers,
            "rows_trained": trained.rows, "last_loss": last[0] if last else None,
        },
        rows={"trained": used_rows(rows, "train")},
    )  # fmt: skip
    if out is not None and is_first():
        record.save(Path(out).expanduser())
    return Carried(record, trained)


def open_for_training(run: Run) -> Subject:
    """The model of a training run, with a head for the task, or from its config alone."""
    from headcount.tasks.loading import load_for_task, load_tokenizer, require_text
    from headcount.tasks.vocabulary import tokenizer_for

    asked, task = run.options, _task(run)
    assert isinstance(run.model, str)
    require_text(run.model)
    new = tokenizer_for(task, asked.new_tokenizer) if asked.new_tokenizer is not None else None
    tokenizer = new if new is not None else load_tokenizer(run.opening.tokenizer or run.model)
    model = load_for_task(
        run.model, task, from_scratch=asked.from_scratch, new_tokenizer=new,
        seed=asked.training.seed, allow_pickle=run.opening.allow_pickle,
    )  # fmt: skip
    return Subject(
        model=model, tokenizer=tokenizer, task=task, name=run.model, source=run.source,
        opening=run.opening,
    )  # fmt: skip


def _evaluate(run: Run, out: Any, *, subjects: Subjects | None = None, **_: Any) -> tuple[Any, ...]:
    from headcount.training.evaluate import evaluate_rows
    from headcount.training.evaluation import differences

    asked, subject = run.options, open_run(run, subjects)
    rows = subject.scored(asked.scoring)
    masks = None
    if asked.masks:
        heads = subject.layout
        masks = [Mask.full(heads), *(_mask(text, subject) for text in asked.masks)]
    found = evaluate_rows(
        subject.model, rows, masks, tokenizer=subject.tokenizer, scoring=asked.scoring,
        tokens=asked.tokens, beams=asked.beams,
    )  # fmt: skip
    lost = differences(found, asked.scoring)
    result = found[0].to_json() | {"model": run.model, "seed": asked.scoring.seed}
    if masks:
        result["masks"] = [
            each.to_json() | {"differences": {one.metric: one.to_json() for one in changes}}
            for each, changes in zip(found[1:], lost, strict=True)
        ]
    scored = {"split": rows.split, "n": found[0].n, "seed": asked.scoring.seed}
    about = _depends(run, subject.model, subject.tokenizer, scored=rows.fingerprint)
    used = {"scored": scored | {"fingerprint": rows.fingerprint}}
    return result, about, used, (found, lost)


def _importance(
    run: Run, out: Any, *, report: Any, subjects: Subjects | None = None, **_: Any
) -> tuple[Any, ...]:
    from headcount.sensitivity.gradients import importance

    asked, subject = run.options, open_run(run, subjects)
    task = subject.need_task()
    mask = _mask(asked.keep, subject) if asked.keep else None
    how = to_plain(asked.measuring) | {"tokenizer": subject.tokenizer, "mask": mask}
    found = importance(subject.model, task, report=report, **how)
    split = asked.measuring.split or subject.looked_at
    rows = subject.rows_of(split)
    result = {"model": run.model, "task": task.name, "seed": asked.measuring.seed}
    about = _depends(run, subject.model, subject.tokenizer, rows=rows)
    used = {"measured": used_rows(rows, split) | {"sampled": asked.measuring.samples}}
    numbers = found.to_json()
    return result | {"predicts": numbers["kind"], **numbers}, about, used, found


def _redundancy(
    run: Run, out: Any, *, report: Any, state: Path | None = None, **more: Any
) -> tuple[Any, ...]:
    from headcount.likeness.measure import redundancy
    from headcount.tasks.inputs import read_inputs
    from headcount.tasks.opening import open_model

    asked, task = run.options, None if run.task is None else _task(run)
    assert isinstance(run.model, str)
    model, tokenizer, _ = open_model(run.model, run.opening, reads=True)
    rows, name = read_inputs(model, tokenizer, asked.reading, task, decides=True)
    found = redundancy(
        model, rows, samples=asked.reading.most, seed=asked.reading.seed, tokenizer=tokenizer,
        name=name, state=state, keep_state=True, progress=report, **vars(asked.likening),
    )  # fmt: skip
    if out is not None:
        found.save(out)
    about = _depends(run, model, tokenizer, inputs=told(rows))
    return found.to_json(), about, {"measured": used_inputs(rows, name)}, found


def _roles(run: Run, out: Any, *, report: Any, **more: Any) -> tuple[Any, ...]:
    from headcount.behaviour.inputs import role_inputs
    from headcount.behaviour.measure import roles
    from headcount.tasks.opening import open_model

    asked, task = run.options, None if run.task is None else _task(run)
    assert isinstance(run.model, str)
    scored = task if asked.describing.alone else None
    model, tokenizer, _ = open_model(run.model, run.opening, scored, reads=True)
    pruned = open_model(asked.pruned, run.opening, scored)[0] if asked.pruned else None
    rows, name = role_inputs(model, tokenizer, asked.reading, task)
    found = roles(
        model, rows, task=task, samples=asked.reading.most, max_length=asked.reading.max_length,
        seed=asked.reading.seed, tokenizer=tokenizer, name=name, progress=report, pruned=pruned,
        **vars(asked.describing),
    )  # fmt: skip
    after = {} if pruned is None else {"pruned": fingerprint.identity(pruned, tokenizer)}
    about = _depends(run, model, tokenizer, inputs=told(rows), **after)
    used = {"measured": used_inputs(rows, name)}
    if scored is not None:
        about["scored"] = Subject(model=model, task=scored).rows_of(scored.evaluation)
        limit = {"sampled": asked.describing.limit}
        used["scored"] = used_rows(about["scored"], scored.evaluation) | limit
    return found.to_json(), about, used, found


def _transfer(run: Run, out: Any, *, bar: Any = None, **_: Any) -> tuple[Any, ...]:
    from headcount.changes.study import transfer_study

    asked, options = run.options, run.options.transferring
    models, tasks, tokenizer, rows, name = open_transfer(run)
    how = {"tokenizer": tokenizer, "reading": asked.reading, "options": options}
    found = transfer_study(models, tasks, rows, name=name, **how, **({"bar": bar} if bar else {}))
    named = {"pretrained": run.model, "finetuned": asked.finetuned}
    found = replace(found, made={**found.made, **named})
    second = fingerprint.identity(models[1], tokenizer)
    about = _depends(run, models[0], tokenizer, inputs=told(rows), finetuned=second)
    return found.to_json(), about, {"measured": used_inputs(rows, name)}, found


def open_transfer(run: Run) -> tuple[list[PreTrainedModel], list[Task | None], Any, Encoded, str]:
    """(the two models, their tasks, their tokenizer, what both read and what that is)."""
    from headcount.changes.pair import open_pair
    from headcount.tasks.inputs import read_inputs
    from headcount.tasks.opening import open_several
    from headcount.tasks.source import Source

    asked, options, before = run.options, run.options.transferring, None
    if options.pretraining_task is not None:
        before = TASKS[options.pretraining_task](Source(data=options.pretraining_data))
    tasks = [before, None if run.task is None else _task(run)]
    assert isinstance(run.model, str)
    models, tokenizer = open_several([run.model, asked.finetuned], run.opening, tasks)
    open_pair(*models)
    rows, name = read_inputs(models[0], tokenizer, asked.reading, tasks[1])
    return models, tasks, tokenizer, rows, name


def _bench(run: Run, out: Any, *, track: Any = None, **_: Any) -> tuple[Any, ...]:
    from headcount.models.speed import bench

    asked = run.options
    assert isinstance(run.model, str)
    found = bench(
        run.model, asked.pruned, ratio=asked.ratio, batch=asked.batch,
        length=asked.length, repeats=asked.repeats, onnx=asked.onnx,
        from_config=asked.from_config, allow_pickle=run.opening.allow_pickle,
        device=run.opening.device, seed=run.seed, **({"track": track} if track else {}),
    )  # fmt: skip
    about = {"model": run.model, "device": run.opening.device, "versions": fingerprint.versions()}
    about |= {"kind": run.kind, "options": to_plain(asked), "seed": run.seed}
    return found.to_json(), about, {}, found


def _mask(text: str, subject: Subject) -> Mask:
    """A mask as it is typed, or what is in the file that is named."""
    said = read_text(text, "mask") if text.endswith(".json") else text
    return read_mask(said, subject.model, subject.layout)


def used_inputs(rows: Encoded, name: str) -> dict[str, Any]:
    """Inputs without labels as a record tells them."""
    return used_rows(rows_fingerprint(rows), name)


_CARRIERS: Mapping[str, Callable[..., Any]] = {
    "prune": _prune,
    "train": _train,
    "evaluate": _evaluate,
    "importance": _importance,
    "redundancy": _redundancy,
    "roles": _roles,
    "transfer": _transfer,
    "bench": _bench,
}
