"""`headcount curve MODEL --task T --out DIR`: score against the share of heads removed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from headcount.cli.common import Json, emit, plain, say, warn
from headcount.cli.drawing import can_draw
from headcount.cli.method_options import (
    METHOD_OPTIONS,
    MethodOptions,
    for_methods,
    open_model,
    read_texts,
)
from headcount.cli.progress import bar
from headcount.cli.train import CHOICES, Choices
from headcount.report.tables.amounts import scored
from headcount.report.tables.columns import table
from headcount.tasks.source import Source

if TYPE_CHECKING:
    from headcount.studies.points import Found

Data = Annotated[Source, Parameter(name="*")]


def curve(
    model: str,
    /,
    *,
    task: str,
    out: Path,
    methods: tuple[str, ...] = ("random", "cluster", "importance"),
    ratios: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    seeds: int = 5,
    recover: bool = False,
    finetune: bool = False,
    chosen: MethodOptions = METHOD_OPTIONS,
    source: Data = Source(),  # noqa: B008
    tokenizer: str | None = None,
    inputs: Path | None = None,
    samples: int = 512,
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
    """Score a model at many ratios and by several methods, several seeds each.

    Finished points are kept in --out: the same command again goes on after a crash, and one with
    more methods, ratios or seeds computes only what is missing. Written there: curve.parquet,
    curve.json, and where matplotlib is installed curve.png and .svg, and for the method cluster
    chance.png and .svg, how often each head goes.

    Examples: `headcount curve ./run --task mrpc --data glue --out curve` ·
    `headcount curve ./run --task sst2 --methods random,importance --ratios 0.25,0.5,0.75
    --recover --out curve`

    Parameters
    ----------
    model
        A model folder or a name on the hub.
    task
        What to score on; see `headcount ls tasks`.
    out
        The folder of the curve.
    methods
        Methods with a ratio; see `headcount ls methods`.
    ratios
        Shares of heads to remove.
    seeds
        Cuts at each ratio: draws, clusterings, samples of rows, and seeds of training.
    recover
        Solve the output projections again after each cut.
    finetune
        Train after each cut.
    tokenizer
        Folder or name of the tokenizer, where it is not with the model.
    inputs
        A file with a text on each line, for recovery and clustering instead of the task's rows.
    samples
        Rows of the train split that methods and recovery look at.
    split
        Which rows are scored; the task's dev split when left out.
    limit
        Score a seeded sample of so many rows.
    preset
        Where training options start from; see `headcount train --help`.
    draws
        Draws of the bootstrap behind each point's interval.
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
    from headcount.studies.curve import curve as run
    from headcount.tasks import TASKS
    from headcount.tasks.loading import hush
    from headcount.training.processes import require_one

    hush()
    require_one("curve")
    figures = can_draw()
    shares = list(dict.fromkeys(ratios))
    own = for_methods(chosen, methods)
    trains = options.on(preset)
    opened = TASKS[task](source)
    loaded, words, fresh = open_model(
        model, opened, tokenizer, trains=finetune, seed=trains.seed, allow_pickle=allow_pickle
    )
    if dry_run:
        plan = {"class": type(loaded).__name__, "points": 1 + len(methods) * len(shares) * seeds}
        emit(plan, as_json=as_json, table=table(["would score", ""], list(plan.items())))
        return
    loaded.to(pick_device(device))
    texts = read_texts(inputs, loaded, words, trains.max_length)
    try:
        with bar(f"curve on {task}") as report:
            found = run(
                loaded,
                opened,
                methods,
                shares,
                seeds=seeds,
                out=out,
                tokenizer=words,
                recover=recover,
                finetune=trains if finetune else False,
                options=own,
                overwrite=overwrite,
                progress=report,
                note=warn,
                inputs=texts,
                samples=samples,
                split=split,
                limit=limit,
                max_length=trains.max_length,
                draws=draws,
                seed=trains.seed,
                device=device,
                fresh=fresh,
            )
    except KeyboardInterrupt:
        say(f"headcount: the same command again goes on with the points in {out}.")
        raise
    title = f"{Path(model).name} on {opened.name}{_after(recover, finetune)}"
    write(found, out, title, figures=figures)
    emit(found.to_json() | {"out": out}, as_json=as_json, table=_page(found))


def write(found: Found, out: Path, title: str, *, figures: bool) -> None:
    """The curve as figures, as a table and as JSON, each file whole or not at all."""
    from headcount.files import whole
    from headcount.report.curves import chance_figure, curve_figure
    from headcount.report.figures import save_both

    data = plain(found.to_json())
    with whole(out / "curve.json") as partial:
        partial.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    found.save_parquet(out / "curve.parquet")
    if not figures:
        return
    metric = str(found.about["metric"])
    figure = curve_figure(found.summary(), vars(found.full), title=title, metric=metric)
    save_both(figure, out / "curve")
    if found.chance:
        maps = chance_figure(found.chance, title="How often each head goes, by clustering")
        save_both(maps, out / "chance")


def _after(recover: bool, finetune: bool) -> str:
    words = ["recovered"] * recover + ["fine-tuned"] * finetune
    return f", {' and '.join(words)}" if words else ""


def _page(found: Found) -> Table:
    full = found.full
    rows: list[tuple[Any, ...]] = [
        ("all heads", "0", full.kept, 1, scored(full.score), "", "", "100.0 %", "")
    ]
    rows += [
        (
            row["method"],
            f"{row['ratio']:g}",
            row["kept"],
            row["seeds"],
            scored(row["mean"]),
            f"{row['sd']:.4f}" if row["seeds"] > 1 else "",
            f"{row['worst']:.4f} to {row['best']:.4f}",
            f"{100 * row['relative']:.1f} %",
            row["lost"],
        )
        for row in found.summary()
    ]
    columns = ["method", "ratio", "kept", "seeds", "mean", "sd", "worst to best", "relative"]
    about = found.about
    title = f"{about['task']} {about['split']}, {about['metric']}, n = {full.n}"
    built = table([*columns, "from all heads"], rows, title=title)
    built.caption_justify = "left"
    built.caption = f"Methods and recovery look at up to {about['samples']} rows of "
    built.caption += f"{about['looked_at']}; {full.n} rows of {about['split']} are scored."
    if worse := not_better_than_random(found.summary(), lambda row: f" at {row['ratio']:g}"):
        built.caption += f"\n{worse}"
    return built


def not_better_than_random(
    summary: Sequence[Mapping[str, Any]], where: Callable[[Any], str] = lambda row: ""
) -> str:
    """Which methods a study did not tell apart from random cuts, or found worse; empty if none."""
    named = [
        f"{row['method']}{where(row)}"
        for row in summary
        if row.get("than_random", "better") != "better"
    ]
    return f"Not shown to be better than random: {', '.join(named)}." if named else ""
