"""Option groups as commands take them: each class of typed options is made once, here.

def evaluate(model, *, scoring: ScoringFlags = SCORING_FLAGS): ...
scoring.on()                                 # Scoring, with what was typed
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, overload

from cyclopts import Parameter

from headcount.base.errors import HeadcountError, UsageError
from headcount.behaviour.options import RoleOptions
from headcount.changes.options import DriftOptions, Sentence
from headcount.cli.common import emit, warn
from headcount.cli.progress import typed_words
from headcount.cli.typed import TypedOptions, typed
from headcount.likeness.options import AgreementOptions, DistanceOptions
from headcount.models.model_options import ModelOptions
from headcount.runs.run import Run
from headcount.sensitivity.options import GradientOptions
from headcount.studies.executors.protocol import ExecutorOptions
from headcount.studies.search.options import SearchOptions
from headcount.tasks.calibration import Calibration, InputOptions
from headcount.tasks.source import Source
from headcount.training.logging import Logging
from headcount.training.scoring import Scoring
from headcount.views.tables.columns import table

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from headcount.runs.kinds.kind import RunKind, RunResult
    from headcount.runs.subject import Subject
    from headcount.tasks import Task
    from headcount.tasks.opening import OpenModel

    ModelFlags = TypedOptions[ModelOptions]
    SourceFlags = TypedOptions[Source]
    ScoringFlags = TypedOptions[Scoring]
    CalibrationFlags = TypedOptions[Calibration]
    InputFlags = TypedOptions[InputOptions]
    GradientFlags = TypedOptions[GradientOptions]
    DistanceFlags = TypedOptions[DistanceOptions]
    RoleFlags = TypedOptions[RoleOptions]
    AgreementFlags = TypedOptions[AgreementOptions]
    SentenceFlags = TypedOptions[Sentence]
    DriftFlags = TypedOptions[DriftOptions]
    WeightFlags = TypedOptions[ModelOptions]
    ExportFlags = TypedOptions[ModelOptions]
    SearchFlags = TypedOptions[SearchOptions]
    LoggingFlags = TypedOptions[Logging]
    ExecutorFlags = TypedOptions[ExecutorOptions]
else:
    ModelFlags = typed(ModelOptions, "Model")
    SourceFlags = typed(Source, "Data", leave_out=("in_memory",))
    ScoringFlags = typed(Scoring, "Scoring")
    CalibrationFlags = typed(Calibration, "Calibration")
    InputFlags = typed(InputOptions, "Inputs")
    GradientFlags = typed(GradientOptions, "Measuring")
    DistanceFlags = typed(DistanceOptions, "Measuring")
    RoleFlags = typed(RoleOptions, "Measuring")
    AgreementFlags = typed(AgreementOptions, "Comparing")
    SentenceFlags = typed(Sentence, "Text and heads")
    DriftFlags = typed(DriftOptions, "Comparing")
    WeightFlags = typed(ModelOptions, "Model", leave_out=("tokenizer", "device"))
    ExportFlags = typed(ModelOptions, "Model", leave_out=("device",))
    SearchFlags = typed(SearchOptions, "Searching")
    LoggingFlags = typed(Logging, "Logging", leave_out=("run",))
    ExecutorFlags = typed(ExecutorOptions, "Executor")

MODEL_FLAGS = ModelFlags()
SOURCE_FLAGS = SourceFlags()
SCORING_FLAGS = ScoringFlags()
CALIBRATION_FLAGS = CalibrationFlags()
INPUT_FLAGS = InputFlags()
GRADIENT_FLAGS = GradientFlags()
DISTANCE_FLAGS = DistanceFlags()
ROLE_FLAGS = RoleFlags()
AGREEMENT_FLAGS = AgreementFlags()
SENTENCE_FLAGS = SentenceFlags()
DRIFT_FLAGS = DriftFlags()
WEIGHT_FLAGS = WeightFlags()
EXPORT_FLAGS = ExportFlags()
SEARCH_FLAGS = SearchFlags()
LOGGING_FLAGS = LoggingFlags()
EXECUTOR_FLAGS = ExecutorFlags()

Model = Annotated[str, Parameter(help="A model folder, a name on the hub, or a shipped model.")]
TaskName = Annotated[str, Parameter(help="Name of the task; see `headcount ls tasks`.")]
AnyTask = Annotated[str | None, Parameter(help="Name of the task; see `headcount ls tasks`.")]
KEEP = "Heads to keep: 777322, 6x12, JSON or mask.json"
Keep = Annotated[str | None, Parameter(name=("--keep", "--mask"), help=f"{KEEP}; default all.")]
Probe = Annotated[
    Path | None,
    Parameter(help="Inputs to run the model on (.safetensors or .npz); else they are made up."),
]
NewFolder = Annotated[Path, Parameter(help="The folder to write; it must be new or empty.")]
Figures = Annotated[
    list[Path] | None, Parameter(help="Draw figures to these files (.png or .svg).")
]
DryRun = Annotated[bool, Parameter(negative=(), help="Print what would be done, and stop.")]
Overwrite = Annotated[bool, Parameter(negative=(), help="Discard what is in --out and start over.")]
Seed = Annotated[int, Parameter(help="Seed of everything random in the run.")]
OverFile = Annotated[
    bool,
    Parameter(
        name="--overwrite", negative=(), help="Replace --out even if it has results of another run."
    ),
]
"""Types of parameters that mean the same in every command."""


def open_model(
    name: str, model_options: ModelOptions, task: Task | None = None, *, trains: bool = False
) -> OpenModel:
    """The model with its tokenizer, without transformers' own messages."""
    from headcount.tasks.loading import hush
    from headcount.tasks.opening import open_model as opened

    hush()
    return opened(name, model_options, task, trains=trains)


def open_several(
    names: Sequence[str], model_options: ModelOptions, *, images: bool = False
) -> tuple[list[PreTrainedModel], PreTrainedTokenizerBase]:
    """(models on their device, the tokenizer they share): two checkpoints of one model."""
    from headcount.tasks.loading import hush
    from headcount.tasks.opening import open_several as opened

    hush()
    return opened(names, model_options, images=images)


@overload
def open_task(name: str, source: TypedOptions[Source], split: str | None = None) -> Task: ...
@overload
def open_task(
    name: str | None, source: TypedOptions[Source], split: str | None = None
) -> Task | None: ...
def open_task(
    name: str | None, source: TypedOptions[Source], split: str | None = None
) -> Task | None:
    """The task with the user's data; data or a split without a task is refused."""
    from headcount.tasks.catalog import read_task

    if name is not None:
        return read_task(name, source.on())
    if given := [*source.given(), *(["split"] if split else [])]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"Data and splits need --task, which is missing: {options}.")
    return None


def read_of(
    input_options: TypedOptions[InputOptions], task: str | None, source: TypedOptions[Source]
) -> InputOptions:
    """The inputs, from one source: a task, a file or random tokens."""
    read = input_options.on()
    if task is not None and not (read.rows is None and read.random is None):
        raise UsageError("Pass one of --task, --calibration and --random: inputs have one source.")
    open_task(task, source, read.split)
    return read


def open_subject(
    model: str,
    task: str | None,
    source: TypedOptions[Source],
    model_options: TypedOptions[ModelOptions],
    *,
    trains: bool = False,
    seed: int = 0,
) -> Subject:
    """The model and the task of a run, opened by their names."""
    from headcount.runs.subject import make_subject
    from headcount.tasks.loading import hush

    hush()
    if task is None:  # data without a task is refused
        open_task(task, source)
    return make_subject(
        model, task, source=source.on(), model_options=model_options.on(), trains=trains, seed=seed
    )


def run_of(
    kind: str,
    model: str,
    options: RunKind,
    task: str | None,
    source: TypedOptions[Source],
    model_options: TypedOptions[ModelOptions],
    seed: int = 0,
) -> Run:
    """The run of a command line."""
    return Run(
        kind,
        model,
        options=options,
        task=task,
        source=source.on(),
        model_options=model_options.on(),
        seed=seed,
    )


def require_same_run(run: Run, out: Path | None, record: Path | None, overwrite: bool) -> None:
    """Refuse to write over a file that is no earlier result of the same run, by its `record`.

    With `overwrite` it may be any.
    """
    if out is None or record is None or overwrite or not (out.exists() or record.exists()):
        return
    from headcount.runs.record import read_run

    try:
        before = read_run(record)[0]
    except HeadcountError:
        before = None
    if before is None or before.key != run.key:
        raise UsageError(
            f"{out} exists, and is not the result of the same run: pass --overwrite to replace it, "
            "or choose another --out."
        )


def executed(
    run: Run,
    out: Path | None = None,
    *,
    report: Callable[..., object] | None = None,
    work: Path | None = None,
    overwrite: bool = False,
    logging: Logging | None = None,
) -> RunResult:
    """A run executed, quietly, for a record that knows its command."""
    from headcount.runs.execute import execute
    from headcount.runs.kinds.kind import RunContext
    from headcount.tasks.loading import hush

    hush()
    context = RunContext(
        out=out,
        report=report,
        work=work,
        overwrite=overwrite,
        logging=logging,
        command=command_line(),
        note=warn,
    )
    return execute(run, context)


def command_line() -> str:
    """The whole line of the command that is running, for the record."""
    words = typed_words()
    return shlex.join(["headcount", *(sys.argv[1:] if words is None else words)])


def would(what: str, plan: dict[str, Any], as_json: bool) -> None:
    """Print what a dry run would do; the options of training come first in the table."""
    shown = {**plan.get("options", {}), **plan}
    rows = [(name, value) for name, value in shown.items() if name != "options"]
    emit(plan, as_json=as_json, table=table([f"would {what}", ""], rows))


def would_run(what: str, run: Run, as_json: bool) -> None:
    """Print what a run would do."""
    from headcount.runs.execute import plan
    from headcount.tasks.loading import hush

    hush()
    would(what, plan(run), as_json)
