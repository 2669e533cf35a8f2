"""`headcount compare MODEL --task T --out DIR`: methods at equal sparsity and equal training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from headcount.cli.common import Json, emit, plain, say, warn
from headcount.cli.curve import not_better_than_random
from headcount.cli.method_options import (
    METHOD_OPTIONS,
    MethodOptions,
    for_methods,
    open_model,
    read_texts,
)
from headcount.cli.progress import bar
from headcount.cli.train import CHOICES, Choices
from headcount.report.tables.amounts import interval, scored
from headcount.report.tables.columns import table
from headcount.tasks.source import Source

if TYPE_CHECKING:
    from headcount.studies.compare import Compared

Data = Annotated[Source, Parameter(name="*")]
METHODS = (
    "all-heads", "random", "importance", "hard-concrete", "meta", "subset", "cluster",
    "straight-through", "surgeon+recover",
)  # fmt: skip
"""What is compared when nobody says what."""
TRAINED = "against_all_heads"


def compare(
    model: str,
    /,
    *,
    task: str,
    out: Path,
    ratio: float = 0.5,
    methods: tuple[str, ...] = METHODS,
    seeds: int = 5,
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
    """Cut a fine-tuned model by several methods, train each cut alike, and test against random.

    All end with the same number of heads and have one training with the same options: after the
    cut, or together with the gates where a method learns them. Finished runs are kept in --out:
    the same command again goes on after a crash, and one with more methods or seeds computes only
    what is missing. Written there: runs.jsonl and compare.json.

    Examples: `headcount compare ./run --task mrpc --data glue --ratio 0.5 --out compare` ·
    `headcount compare ./run --task sst2 --methods random,subset,straight-through --steps 300
    --out compare`

    Parameters
    ----------
    model
        A model folder or a name on the hub, fine-tuned for the task.
    task
        What to train and score on; see `headcount ls tasks`.
    out
        The folder of the comparison.
    ratio
        Share of heads to remove, 0 to 1.
    methods
        Methods with a ratio; see `headcount ls methods`. +recover after a name
        solves the output projections again before the training; all-heads trains without a cut.
    seeds
        Runs of each method: draws, clusterings, samples of rows, and seeds of training.
    tokenizer
        Folder or name of the tokenizer, where it is not with the model.
    inputs
        A file with a text on each line, for clustering instead of random tokens.
    samples
        Rows of the train split that methods look at.
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
    from headcount.files import whole
    from headcount.models.devices import pick_device
    from headcount.studies.compare import ALL, method_of
    from headcount.studies.compare import compare as run
    from headcount.tasks import TASKS
    from headcount.tasks.loading import hush
    from headcount.training.processes import require_one

    hush()
    require_one("compare")
    own = for_methods(chosen, [method_of(name) for name in methods if name != ALL])
    trains = options.on(preset)
    opened = TASKS[task](source)
    loaded, words, _ = open_model(
        model, opened, tokenizer, trains=False, seed=trains.seed, allow_pickle=allow_pickle
    )
    if dry_run:
        plan = {"class": type(loaded).__name__, "runs": len(methods) * seeds, "ratio": ratio}
        emit(plan, as_json=as_json, table=table(["would compare", ""], list(plan.items())))
        return
    loaded.to(pick_device(device))
    try:
        with bar(f"comparing on {task}") as report:
            found = run(
                loaded,
                opened,
                methods,
                ratio=ratio,
                seeds=seeds,
                train=trains,
                out=out,
                tokenizer=words,
                options={name: values for name, values in own.items() if values},
                overwrite=overwrite,
                progress=report,
                note=warn,
                inputs=read_texts(inputs, loaded, words, trains.max_length),
                samples=samples,
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
    data = found.to_json()
    with whole(out / "compare.json") as partial:
        partial.write_text(json.dumps(plain(data), indent=2) + "\n", encoding="utf-8")
    emit(data | {"out": out}, as_json=as_json, table=_page(found))


def _page(found: Compared) -> Table:
    full = found.full
    shown = (scored(full["score"]), interval(full), *[""] * 7)
    rows: list[tuple[Any, ...]] = [("all heads, as given", "", "", *shown)]
    for row in found.summary():
        budget, versus, trained = row["budget"], row.get("against_random"), row.get(TRAINED)
        rows.append(
            (
                row["method"],
                str(row["kept"]),
                str(row["seeds"]),
                scored(row["mean"]),
                interval(row),
                "" if versus is None else f"{versus['mean']:+.4f}",
                "" if versus is None else interval(versus),
                "" if versus is None else f"{versus['p']:.3g}",
                row["lost"],
                "" if trained is None else signed(trained, found.metric),
                f"{budget['epochs']:g}",
                str(budget["examples_measured"]),
            )
        )
    columns = ["method", "kept", "seeds", "mean", "95 % interval", "against random"]
    columns += ["95 % interval ", "p", "from the given model", "from all-heads"]
    columns += ["epochs", "rows measured"]
    about = found.about
    title = f"{about['task']} {about['split']}, {about['metric']}, n = {full['n']}, "
    title += f"{100 * about['ratio']:g} % of the heads removed"
    built = table(columns, rows, title=title)
    built.caption, built.caption_justify = not_better_than_random(found.summary()) or None, "left"
    return built


def signed(paired: Mapping[str, float], metric: str) -> str:
    """A difference over seeds, as differences are written: −0.003 [−0.011, +0.004]."""
    from headcount.tasks.metrics import Difference

    low, high = paired["low"], paired["high"]
    return str(Difference(metric=metric, value=paired["mean"], low=low, high=high))
