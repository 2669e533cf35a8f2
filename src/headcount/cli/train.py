"""`headcount train MODEL --task T --out DIR`: fine-tune or pre-train a model on a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headcount.cli import groups
from headcount.cli import method_options as cuts
from headcount.cli.common import Json, emit, say, warn
from headcount.cli.progress import bar
from headcount.cli.typed import Typed, typed
from headcount.errors import UsageError
from headcount.runs.kinds import Train
from headcount.runs.run import Run
from headcount.training.options import PRESETS, TrainOptions
from headcount.views.tables.columns import table
from headcount.views.tables.records import train_table

if TYPE_CHECKING:
    Asked = Typed
    Training = Typed
else:
    Asked = typed(Train, "Rows and weights", leave_out=("training",))
    Training = typed(TrainOptions, "Training")


def train(
    model: str,
    /,
    *,
    task: groups.TaskName,
    out: Path,
    preset: Literal["finetune", "translation", "pocket"] = "finetune",
    asked: Asked = Asked(),  # noqa: B008
    training: Training = Training(),  # noqa: B008
    source: groups.Sourced = groups.SOURCED,
    opening: groups.Opened = groups.OPENED,
    logging: groups.Logged = groups.LOGGED,
    overwrite: cuts.Overwrite = False,
    dry_run: groups.DryRun = False,
    as_json: Json = False,
) -> None:
    """Fine-tune a model on a task, or train it from scratch.

    The same command again goes on after a crash, or does nothing when the run is done. Several
    processes: `accelerate launch -m headcount train …`.

    Examples: `headcount train bert-base-uncased --task sst2 --out run` ·
    `headcount train ./bert --task mrpc --data glue --freeze 4 --out run` ·
    `headcount train config.json --from-scratch --tokenizer ./bert --task masked-lm
    --data text.txt --out run`

    Parameters
    ----------
    model
        A model folder or a name on the hub; with --from-scratch also a config.json.
    out
        Where the run goes: checkpoints, learning curve, and the finished model.
    preset
        Where options start from: the papers' fine-tuning, a Transformer for translation, or
        fine-tuning with the larger steps that the shipped pocket models need.
    """
    options = training.on(PRESETS[preset])
    chosen = asked.on(Train(training=options))
    run = Run(
        "train", model, task=task, source=source.on(), opening=opening.on(), seed=options.seed,
        options=chosen,
    )  # fmt: skip
    if chosen.new_tokenizer is not None and run.opening.tokenizer is not None:
        raise UsageError("--new-tokenizer goes with --from-scratch, and without --tokenizer.")
    if task not in ("translation", "pocket-translation") and preset == "translation":
        say("headcount: the preset translation is meant for translation tasks.")
    from headcount.runs.carry import carry
    from headcount.tasks.loading import hush
    from headcount.training.processes import is_first

    hush()
    if dry_run:
        _plan(run, as_json=as_json)
        return
    try:
        with bar(f"training on {task}") as report:
            record = carry(
                run, out, overwrite=overwrite, command=groups.command_line(), note=warn,
                report=lambda step, steps, point: report(step, steps, _loss(point)),
                logging=logging.on(),
            ).record  # fmt: skip
    except KeyboardInterrupt:
        if is_first():
            say(f"headcount: {_after_interruption(out)}")
        raise
    if is_first():
        data = record.to_json() | {"out": out}
        emit(data, as_json=as_json, table=train_table(data))


def _after_interruption(out: Path) -> str:
    """What the same command groups.would do."""
    from headcount.training.checkpoints import last_checkpoint, step_of

    step = step_of(last_checkpoint(out.expanduser()))
    if step is None:
        return (
            "no checkpoint was saved yet, so the same command starts anew; --save-minutes and "
            "--save-every save sooner."
        )
    return f"the same command again goes on from step {step} in {out}."


def _plan(run: Run, *, as_json: bool) -> None:
    from headcount.runs.carriers.train import open_for_training
    from headcount.training.session import training_rows

    subject, asked = open_for_training(run), run.asked(Train)
    options = asked.training
    task = subject.need_task()
    rows = training_rows(subject.model, task, subject.tokenizer, options, asked.sample)
    steps = options.steps or round(-(-len(rows) // options.batch_size) * options.epochs)
    plan: dict[str, Any] = {
        "class": type(subject.model).__name__,
        "task": task.name,
        "rows": len(rows),
        "tokens": int(rows.lengths.sum()),
        "steps": steps,
    }
    shown = [(name, str(value)) for name, value in {**options.to_json(), **plan}.items()]
    built = table(["would train", ""], shown)
    emit(plan | {"options": options.to_json()}, as_json=as_json, table=built)


def _loss(point: dict[str, float]) -> str:
    return f", loss {point['loss']:.3f}" if "loss" in point else ""
