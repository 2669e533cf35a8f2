"""What the page says of every head of a search: importance, roles, attention in one example.

They are measured on calibration rows, which the search has read anyway, when it has its answer.
`details/` has the files of `headcount importance`, `roles` and `attention`; what is there is kept.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from headcount.base.errors import HeadcountError, UnsupportedError, UsageError
from headcount.base.files import write_json
from headcount.base.json_object import JsonDict
from headcount.base.options import defined
from headcount.changes.sentence import attention
from headcount.runs.execute import execute
from headcount.runs.kinds.importance import ImportanceOptions
from headcount.runs.kinds.kind import RunContext, RunKind
from headcount.runs.kinds.roles import RolesOptions
from headcount.runs.opening import subject_key
from headcount.runs.record import read_run
from headcount.runs.run import Run
from headcount.runs.subject import Subject, Subjects
from headcount.sensitivity.options import GradientOptions
from headcount.studies.search.answers import MODEL, SearchRequest
from headcount.studies.search.estimate import SearchResult
from headcount.studies.search.options import DETAIL_ROWS
from headcount.tasks.calibration import InputOptions
from headcount.tasks.kinds import task_kind
from headcount.tasks.kinds.kind import TaskKind

FOLDER = "details"
LENGTH = 128
"""Tokens of a row, at most: attention takes their square."""
WORDS = 12
"""Of an example whose attention can be taken in at a glance, about."""


def add_details(request: SearchRequest, result: SearchResult, folder: Path) -> None:
    """Measure what is not there yet; what this model or task does not allow is noted."""
    subject, pruned = request.subject, None if result.model is None else str(folder / MODEL)
    samples = min(DETAIL_ROWS, request.like.calibration.samples)
    length, split = min(LENGTH, request.like.scoring.max_length), subject.looked_at
    gradients = GradientOptions(samples=samples, max_length=length, split=split, seed=request.seed)
    inputs = InputOptions(samples=samples, max_length=length, split=split, seed=request.seed)
    importance = ImportanceOptions(gradient_options=gradients)
    roles = RolesOptions(input_options=inputs, pruned=pruned)
    makers = {
        "importance": partial(_measure, request, importance, folder / FOLDER / "importance.json"),
        "roles": partial(_measure, request, roles, folder / FOLDER / "roles.json"),
        "attention": partial(_show, request, result, folder / FOLDER / "attention"),
    }
    if subject.fresh:  # the head of the full model has learnt nothing that heads could matter for
        del makers["importance"]
    for name, make in makers.items():
        try:
            make()
        except (UnsupportedError, UsageError) as error:
            request.note(f"The page has no {name} of the heads: {error}")


def _measure(request: SearchRequest, options: RunKind, path: Path) -> None:
    """A run on the subject of the search, as its command would write it."""
    subject = request.subject
    name = "importance" if isinstance(options, ImportanceOptions) else "roles"
    run = Run(
        name,
        subject.name,
        task=subject.need_task().name,
        source=subject.source,
        model_options=subject.model_options,
        seed=request.seed,
        options=options,
    )
    if not _is_there(path, run):
        request.report(f"measuring {name} of every head, for the page")
        subjects = Subjects()
        subjects.held[subject_key(run, trains=False)] = lambda: subject
        context = RunContext(command=request.command, note=request.note, subjects=subjects)
        path.parent.mkdir(exist_ok=True)
        write_json(path, defined(execute(run, context).record.to_json()), indent=None)


def _is_there(path: Path, run: Run) -> bool:
    try:
        return path.exists() and read_run(path)[0].key == run.key
    except HeadcountError:  # cut short, or of another version
        return False


def _show(request: SearchRequest, result: SearchResult, folder: Path) -> None:
    """The attention of all heads in one example, before and after pruning."""
    if (folder / "attention.json").exists():  # it is written last
        return
    request.report("measuring attention in one example, for the page")
    subject = request.subject
    maps = attention(
        subject.model,
        pruned=result.model,
        tokenizer=subject.tokenizer,
        max_length=LENGTH,
        **_example(subject),
    )
    names = [subject.name] + ([] if result.model is None else [str(folder.parents[1] / MODEL)])
    about = {"model": names[0], "pruned": dict(enumerate(names)).get(1), "command": request.command}
    maps.save(folder, defined(about | maps.to_json()))


def _example(subject: Subject) -> JsonDict:
    """A calibration row that is neither a word nor a page: the arguments of `attention`."""
    task = subject.need_task()
    rows = task.load(subject.looked_at, limit=DETAIL_ROWS)
    if rows.files is not None:
        return {"text": None, "image": rows.files[0]}
    # a kind that encodes its rows itself has something else in the second column
    paired = len(rows.texts) == 2 and type(task_kind(task.kind)).encode is TaskKind.encode
    columns = rows.texts if paired else rows.texts[:1]
    texts = [[str(text or "").split() for text in row] for row in zip(*columns, strict=True)]
    texts = [row for row in texts if all(row)] or [[["."] for _ in columns]]
    chosen = min(texts, key=lambda row: abs(sum(map(len, row)) - WORDS))
    words = [" ".join(text[:WORDS]) for text in chosen]
    return {"text": words[0], "pair": dict(enumerate(words)).get(1)}
