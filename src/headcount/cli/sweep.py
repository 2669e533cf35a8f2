"""`headcount sweep MODEL --task T --over mu=1e-4,1e-3 --out DIR`: what one number of gates does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from headcount.cli.common import Json, emit, plain, say, warn
from headcount.cli.drawing import can_draw
from headcount.cli.method_options import METHOD_OPTIONS, MethodOptions, for_methods, open_model
from headcount.cli.progress import bar
from headcount.cli.train import CHOICES, Choices
from headcount.errors import UsageError
from headcount.report.tables.amounts import interval, scored
from headcount.report.tables.columns import table
from headcount.tasks.source import Source

if TYPE_CHECKING:
    from headcount.studies.sweep import Swept

Data = Annotated[Source, Parameter(name="*")]


def sweep(
    model: str,
    /,
    *,
    task: str,
    over: tuple[str, ...],
    out: Path,
    method: str = "straight-through",
    seeds: int = 3,
    chosen: MethodOptions = METHOD_OPTIONS,
    source: Data = Source(),  # noqa: B008
    tokenizer: str | None = None,
    split: str | None = None,
    limit: int | None = None,
    draws: int = 1000,
    preset: str = "finetune",
    options: Choices = CHOICES,
    overwrite: bool = False,
    allow_pickle: bool = False,
    device: str = "auto",
    dry_run: bool = False,
    as_json: Json = False,
) -> None:
    """Train gates with several values of one option, and see how many heads go at what cost.

    No ratio is asked for: the penalty and the gates' learning rate decide how many heads stay. A
    run in which all gates close is a point with sparsity 1 and the score without any head.
    Finished runs are kept in --out: the same command again goes on after a crash, and one with
    more values or seeds computes only what is missing. Written there: sweep.parquet,
    sweep.json, runs.jsonl, and where matplotlib is installed sweep.png and .svg.

    Examples: `headcount sweep ./run --task cola --data glue --over gate-lr=0.1,0.5,1,5
    --out sweep` · `headcount sweep ./run --task cola --method hard-concrete
    --over mu=1e-5,1e-4,1e-3,1e-2 --seeds 5 --out sweep`

    Parameters
    ----------
    model
        A model folder or a name on the hub, fine-tuned for the task.
    task
        What to train and score on; see `headcount ls tasks`.
    over
        The option to vary and its values: mu=1e-4,1e-3,1e-2. Any number of the method will do.
    out
        The folder of the sweep.
    method
        A method that trains gates and needs no ratio: straight-through or hard-concrete.
    seeds
        Runs with each value.
    tokenizer
        Folder or name of the tokenizer, where it is not with the model.
    split
        Which rows are scored; the task's dev split when left out.
    limit
        Score a seeded sample of so many rows.
    draws
        Draws of the bootstrap behind each run's interval.
    preset
        Where training options start from; see `headcount train --help`.
    overwrite
        Forget what is in --out and start anew.
    allow_pickle
        Load weights that are pickled (.bin), which can run code.
    device
        Where to run: auto, cpu, cuda, cuda:1, mps.
    dry_run
        Say what would be done, and stop.
    """
    from headcount.models.devices import pick_device
    from headcount.studies.sweep import check_sweep
    from headcount.studies.sweep import sweep as run
    from headcount.tasks import TASKS
    from headcount.tasks.loading import hush
    from headcount.training.processes import require_one

    hush()
    require_one("sweep")
    figures = can_draw()
    name, values = read_over(",".join(over))
    own = for_methods(chosen, [method])[method]
    check_sweep(method, name, values, seeds, own)
    trains = options.on(preset)
    opened = TASKS[task](source)
    loaded, words, _ = open_model(
        model, opened, tokenizer, trains=False, seed=trains.seed, allow_pickle=allow_pickle
    )
    if dry_run:
        plan = {"class": type(loaded).__name__, "runs": len(values) * seeds, "over": name}
        emit(plan, as_json=as_json, table=table(["would sweep", ""], list(plan.items())))
        return
    loaded.to(pick_device(device))
    try:
        with bar(f"sweep on {task}") as report:
            found = run(
                loaded,
                opened,
                name,
                values,
                method=method,
                seeds=seeds,
                train=trains,
                out=out,
                tokenizer=words,
                options=own,
                overwrite=overwrite,
                progress=report,
                note=warn,
                split=split,
                limit=limit,
                max_length=trains.max_length,
                draws=draws,
                seed=trains.seed,
                device=device,
            )
    except KeyboardInterrupt:
        say(f"headcount: the same command again goes on with the runs in {out}.")
        raise
    title = f"{Path(model).name} on {opened.name}, {method}"
    write(found, out, title, figures=figures)
    emit(found.to_json() | {"out": out}, as_json=as_json, table=_page(found))


def read_over(text: str) -> tuple[str, list[float]]:
    """`gate-lr=0.1,0.5` as the option's name and its values."""
    name, equals, rest = text.partition("=")
    words = [word.strip() for word in rest.split(",") if word.strip()]
    if not equals or not name.strip() or not words:
        raise UsageError(f"'{text}' is not an option with values; write --over mu=1e-4,1e-3,1e-2.")
    values = []
    for word in words:
        try:
            values.append(float(word))
        except ValueError:
            raise UsageError(f"'{word}' in --over {text} is not a number.") from None
    return name.strip().removeprefix("--").replace("-", "_"), values


def write(found: Swept, out: Path, title: str, *, figures: bool) -> None:
    """The sweep as figure, as a table and as JSON, each file whole or not at all."""
    from headcount.files import whole
    from headcount.report.figures import save_both
    from headcount.report.sweep import sweep_figure

    with whole(out / "sweep.json") as partial:
        partial.write_text(json.dumps(plain(found.to_json()), indent=2) + "\n", encoding="utf-8")
    found.save_parquet(out / "sweep.parquet")
    if not figures:
        return
    figure = sweep_figure(
        found.summary(), found.full, over=_dashed(found), title=title,
        metric=str(found.about["metric"]),
    )  # fmt: skip
    save_both(figure, out / "sweep")


def _dashed(found: Swept) -> str:
    return str(found.about["over"]).replace("_", "-")


def _page(found: Swept) -> Table:
    full, over = found.full, _dashed(found)
    rows: list[tuple[Any, ...]] = [
        ("all heads", "", "", "", "", scored(full["score"]), interval(full), "100.0 %", "", "")
    ]
    rows += [
        (
            f"{row['value']:g}",
            str(row["seeds"]),
            f"{row['kept']:g}",
            f"{row['sparsity']['mean']:.3f}",
            interval(row["sparsity"], 3),
            scored(row["score"]["mean"]),
            interval(row["score"]),
            f"{100 * row['relative']:.1f} %",
            row["lost"],
            f"in {row['all_closed']} of {row['seeds']}" if row["all_closed"] else "",
        )
        for row in found.summary()
    ]
    metric = str(found.about["metric"])
    columns = [over, "seeds", "kept", "sparsity", "95 % interval", metric, "95 % interval "]
    columns += ["relative", "from all heads", "all gates closed"]
    about = found.about
    title = f"{about['method']} on {about['task']} {about['split']}, n = {full['n']}"
    built = table(columns, rows, title=title)
    built.caption_justify = "left"
    built.caption = "\n".join(
        f"Spearman of {over} and {what}: {_trend(trend)}" for what, trend in found.trends().items()
    )
    return built


def _trend(trend: dict[str, float]) -> str:
    if trend["rho"] != trend["rho"]:
        return f"none, it is the same in all {trend['n']} runs"
    return f"{trend['rho']:+.3f}, p = {trend['p']:.3g}, {trend['n']} runs"
