"""`headcount train MODEL --task T --out DIR`: fine-tune or pre-train a model on a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headcount.base.errors import UsageError
from headcount.base.files import expanded
from headcount.cli import groups
from headcount.cli.common import Json, emit, warn
from headcount.cli.progress import bar
from headcount.cli.typed import TypedOptions, typed
from headcount.runs.kinds.train import Train, TrainResult
from headcount.training.options import PRESETS, TRANSLATION, TrainOptions
from headcount.views.tables.records import train_table

if TYPE_CHECKING:
    StartFlags = TypedOptions[Train]
    TrainingFlags = TypedOptions[TrainOptions]
else:
    StartFlags = typed(Train, "Rows and weights", leave_out=("training",))
    TrainingFlags = typed(TrainOptions, "Training")


def train(
    model: str,
    /,
    *,
    task: groups.TaskName,
    out: Path,
    preset: Literal["finetune", "translation", "pocket"] = "finetune",
    start: StartFlags = StartFlags(),  # noqa: B008
    training: TrainingFlags = TrainingFlags(),  # noqa: B008
    source: groups.SourceFlags = groups.SOURCE_FLAGS,
    model_options: groups.ModelFlags = groups.MODEL_FLAGS,
    logging: groups.LoggingFlags = groups.LOGGING_FLAGS,
    overwrite: groups.Overwrite = False,
    dry_run: groups.DryRun = False,
    as_json: Json = False,
) -> None:
    """Fine-tune a model on a task, or train it from scratch.

    Run the same command again to resume after a crash; it does nothing when the run is done.
    Several processes: `accelerate launch -m headcount train …`.

    **Examples:**

    - `headcount train bert-base-uncased --task sst2 --out run`
    - `headcount train ./bert --task mrpc --data glue --freeze 4 --out run`
    - `headcount train config.json --from-scratch --tokenizer ./bert --task masked-lm --data
      text.txt --out run`

    Parameters
    ----------
    model
        A model folder or a name on the hub; with --from-scratch also a config.json.
    out
        Folder of the run: checkpoints, learning curve, and the finished model.
    preset
        Options to start from: the papers' fine-tuning, a Transformer for translation, or
        fine-tuning with the higher learning rate that the shipped pocket models need.
    """
    options = training.on(PRESETS[preset])
    chosen = start.on(Train(training=options))
    run = groups.run_of("train", model, chosen, task, source, model_options, options.seed)
    if chosen.new_tokenizer is not None and run.model_options.tokenizer is not None:
        raise UsageError("--new-tokenizer goes with --from-scratch, and without --tokenizer.")
    if PRESETS[preset] is TRANSLATION and not task.endswith(preset):
        warn("the preset translation is meant for translation tasks.")
    if dry_run:
        groups.would_run("train", run, as_json)
        return
    from headcount.training.checkpoints import goes_on
    from headcount.training.processes import is_first

    try:
        with bar(f"training on {task}") as report:
            record = groups.executed(
                run,
                out,
                overwrite=overwrite,
                logging=logging.on(),
                report=lambda step, steps, point: report(step, steps, _loss(point)),
            ).record
    except KeyboardInterrupt:
        if is_first():
            warn(goes_on(expanded(out)))
        raise
    if is_first():
        data = record.to_json() | {"out": out}
        table = train_table(record.result_as(TrainResult), record.seconds, out)
        emit(data, as_json=as_json, table=table)


def _loss(point: dict[str, float]) -> str:
    return f", loss {point['loss']:.3f}" if "loss" in point else ""
