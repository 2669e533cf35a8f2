"""`headcount train MODEL --task T --out DIR`: fine-tune or pre-train a model on a task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from headcount.cli.common import Json, emit, say
from headcount.cli.progress import bar
from headcount.errors import UsageError
from headcount.report.tables.columns import table
from headcount.tasks.source import Source
from headcount.training.options import PRESETS, TrainOptions

if TYPE_CHECKING:
    from headcount.tasks import Task
    from headcount.training.finetune import Trained


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Choices(TrainOptions):
    """The training options, remembering which of them were typed: only those change a preset."""

    def __new__(cls, **given: Any) -> Choices:
        """Keep the names that were given."""
        made = object.__new__(cls)
        object.__setattr__(made, "given", tuple(given))
        return made

    def on(self, preset: str) -> TrainOptions:
        """The preset with what was typed."""
        typed: tuple[str, ...] = getattr(self, "given", ())
        return replace(PRESETS[preset], **{name: getattr(self, name) for name in typed})


CHOICES = Choices()
Data = Annotated[Source, Parameter(name="*")]


def train(
    model: str,
    /,
    *,
    task: str,
    out: Path,
    preset: Literal["finetune", "translation", "pocket"] = "finetune",
    from_scratch: bool = False,
    tokenizer: str | None = None,
    new_tokenizer: int | None = None,
    source: Data = Source(),  # noqa: B008
    limit: int | None = None,
    fraction: float | None = None,
    options: Choices = CHOICES,
    curve_scores: bool = False,
    overwrite: bool = False,
    allow_pickle: bool = False,
    device: str = "auto",
    dry_run: bool = False,
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
    task
        What to train on; see `headcount ls tasks`.
    out
        Where the run goes: checkpoints, learning curve, and the finished model.
    preset
        Where options start from: the papers' fine-tuning, a Transformer for translation, or
        fine-tuning with the larger steps that the shipped pocket models need.
    from_scratch
        Start from random weights; only the model's config is used.
    tokenizer
        Folder or name of the tokenizer, where it is not with the model.
    new_tokenizer
        Make a tokenizer of so many tokens from the training texts (with --from-scratch).
    limit
        Train on a seeded sample of so many rows.
    fraction
        Train on this share of the rows.
    curve_scores
        Score the dev split after every epoch.
    overwrite
        Forget what is in --out and start anew.
    allow_pickle
        Load weights that are pickled (.bin), which can run code.
    device
        Where to run: auto, cpu, cuda, cuda:1, mps.
    dry_run
        Say what would be done, and stop.
    """
    if new_tokenizer is not None and (tokenizer is not None or not from_scratch):
        raise UsageError("--new-tokenizer goes with --from-scratch, and without --tokenizer.")
    if limit is not None and fraction is not None:
        raise UsageError("Pass --limit or --fraction, not both.")
    if task not in ("translation", "pocket-translation") and preset == "translation":
        say("headcount: the preset translation is meant for translation tasks.")
    from headcount.tasks import TASKS
    from headcount.tasks.loading import hush, load_for_task, load_tokenizer, require_text
    from headcount.tasks.vocabulary import tokenizer_for
    from headcount.training.finetune import finetune
    from headcount.training.processes import is_first

    hush()
    chosen = options.on(preset)
    opened: Task = TASKS[task](source)
    require_text(model)
    new = tokenizer_for(opened, new_tokenizer) if new_tokenizer is not None else None
    words = new if new is not None else load_tokenizer(tokenizer or model)
    settings = {"seed": chosen.seed, "allow_pickle": allow_pickle}
    loaded = load_for_task(model, opened, from_scratch=from_scratch, new_tokenizer=new, **settings)
    sample = fraction if fraction is not None else limit
    if dry_run:
        _plan(loaded, opened, words, chosen, sample, as_json=as_json)
        return
    try:
        with bar(f"training on {task}") as report:
            trained = finetune(
                loaded,
                opened,
                options=chosen,
                out=out,
                tokenizer=words,
                device=device,
                limit=sample,
                curve_scores=curve_scores,
                overwrite=overwrite,
                report=lambda step, steps, point: report(step, steps, _loss(point)),
            )
    except KeyboardInterrupt:
        if is_first():
            say(f"headcount: {_after_interruption(out)}")
        raise
    if is_first():
        _show(model, opened, trained, as_json=as_json)


def _after_interruption(out: Path) -> str:
    """What the same command would do."""
    from headcount.training.checkpoints import last_checkpoint, step_of

    step = step_of(last_checkpoint(out.expanduser()))
    if step is None:
        return (
            "no checkpoint was saved yet, so the same command starts anew; --save-minutes and "
            "--save-every save sooner."
        )
    return f"the same command again goes on from step {step} in {out}."


def _show(model: str, task: Task, trained: Trained, *, as_json: bool) -> None:
    data = {"model": model, "task": task.name, "out": trained.out, **trained.to_json()}
    rows: list[tuple[str, Any]] = [
        ("out", str(trained.out)),
        ("rows", str(trained.rows)),
        ("steps", str(trained.steps)),
        ("seconds", f"{trained.seconds:.1f}"),
    ]
    if trained.resumed_from is not None:
        rows.insert(3, ("resumed from step", str(trained.resumed_from)))
    if trained.curve:
        losses = [point["loss"] for point in trained.curve if "loss" in point]
        rows += [("last loss", f"{losses[-1]:.4f}")] if losses else []
    if trained.evaluation is not None:
        rows += [
            (f"{trained.evaluation.split} {each.metric}", f"{each.shown} {each.interval}".rstrip())
            for each in trained.evaluation.scores
        ]
        rows.append(("n", str(trained.evaluation.n)))
    emit(data, as_json=as_json, table=table(["trained", task.name], rows))


def _plan(
    model: Any, task: Task, tokenizer: Any, options: TrainOptions, sample: Any, *, as_json: bool
) -> None:
    from headcount.training.session import training_rows

    rows = training_rows(model, task, tokenizer, options, sample)
    steps = options.steps or round(-(-len(rows) // options.batch_size) * options.epochs)
    data = {
        "class": type(model).__name__,
        "task": task.name,
        "rows": len(rows),
        "tokens": int(rows.lengths.sum()),
        "steps": steps,
        "options": options.to_json(),
    }
    shown = [(name, str(value)) for name, value in data.items() if name != "options"]
    shown += [(name, str(value)) for name, value in options.to_json().items()]
    emit(data, as_json=as_json, table=table(["would train", ""], shown))


def _loss(point: dict[str, float]) -> str:
    return f", loss {point['loss']:.3f}" if "loss" in point else ""
