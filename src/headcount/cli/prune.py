"""`headcount prune MODEL --method M --ratio R --out DIR`: cut a model, and say what it cost."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.table import Table

from headcount.cli.common import Json, emit, warn
from headcount.cli.drawing import can_draw
from headcount.cli.method_options import (
    METHOD_OPTIONS,
    MethodOptions,
    for_methods,
    open_model,
    read_texts,
)
from headcount.cli.progress import talk
from headcount.cli.train import CHOICES, Choices
from headcount.report.tables.amounts import interval, parameters, scored
from headcount.report.tables.columns import table
from headcount.studies.advice import choose, read_ratio
from headcount.tasks.source import Source

if TYPE_CHECKING:
    from headcount.learned.trace import Trace

Data = Annotated[Source, Parameter(name="*")]


def prune(
    model: str,
    /,
    *,
    out: Path,
    method: str | None = None,
    ratio: float | Literal["free"] | None = None,
    task: str | None = None,
    recover: bool | None = None,
    finetune: bool = False,
    chosen: MethodOptions = METHOD_OPTIONS,
    source: Data = Source(),  # noqa: B008
    tokenizer: str | None = None,
    inputs: Path | None = None,
    samples: int = 512,
    baseline: int = 3,
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
    """Decide which heads stay, remove the others, repair if asked, score, and save.

    The ratio is the share of heads that go: of H heads ⌈H (1 - ratio)⌉ stay, exactly. Without
    --method it is surgeon, followed by recovery, where there is a --task, and cluster where there
    is none: the best that needs no training.

    Examples: `headcount prune ./mrpc --ratio 0.5 --task mrpc --data glue --out small` ·
    `headcount prune ./bert --ratio 0.5 --out small` (no data needed) ·
    `headcount prune ./nmt --method pattern --keep "encoder:777322" --out small` ·
    `headcount prune ./mrpc --method straight-through --ratio 0.5 --task mrpc --out small`

    The methods straight-through, hard-concrete and subset train gates and weights together with
    the training options below, before the cut; --finetune then trains further. The same command
    again goes on after a crash, and gives what is there when it is done.

    Parameters
    ----------
    model
        A model folder or a name on the hub.
    out
        The folder to write: model, mask.json, record.json and card; it must be new or empty.
    method
        How heads are chosen; see `headcount ls methods`. surgeon with a task, cluster without.
    ratio
        Share of heads to remove, 0 to 1; free lets cluster, straight-through and hard-concrete
        decide.
    task
        What to score on, before and after; see `headcount ls tasks`.
    recover
        Solve the output projections again after the cut, without training; done when no method is
        named and there is a task.
    finetune
        Train on the task after the cut.
    tokenizer
        Folder or name of the tokenizer, where it is not with the model.
    inputs
        A file with a text on each line, for recovery and clustering instead of the task's rows.
    samples
        Rows of the train split that methods and recovery look at.
    baseline
        Random cuts of the same size to compare with, repaired alike; 0 for none.
    split
        Which rows are scored; the task's dev split when left out.
    limit
        Score a seeded sample of so many rows.
    preset
        Where training options start from; see `headcount train --help`.
    draws
        Draws of the bootstrap behind the intervals.
    overwrite
        Replace the pruned model in --out, and forget what an unfinished run left.
    allow_pickle
        Load weights that are pickled (.bin), which can run code.
    device
        Where to run: auto, cpu, cuda, cuda:1, mps.
    dry_run
        Say what would be done, and stop.
    """
    from headcount.models.devices import pick_device
    from headcount.models.find import layout
    from headcount.studies.prune import prune as run
    from headcount.tasks import TASKS
    from headcount.tasks.loading import hush
    from headcount.training.processes import is_first

    hush()
    choice = choose(method, recover, task=task is not None)
    own = for_methods(chosen, [choice.method])[choice.method]
    trains = options.on(preset)
    opened = TASKS[task](source) if task is not None else None
    how = {"allow_pickle": allow_pickle}
    loaded, words, fresh = open_model(
        model, opened, tokenizer, trains=finetune, seed=trains.seed, **how
    )
    choice = choose(method, recover, task=task is not None, fresh=fresh)
    own = for_methods(chosen, [choice.method])[choice.method]
    if dry_run:
        heads, share = layout(loaded), read_ratio(choice.method, ratio, own)
        kept = None if share is None else heads.kept_at(share)
        plan = {"class": type(loaded).__name__, "heads": len(heads), "kept": kept}
        plan |= {"method": choice.method, "recover": choice.recover}
        if is_first():
            emit(plan, as_json=as_json, table=table(["would cut", ""], list(plan.items())))
        return
    loaded.to(pick_device(device))
    found = run(
        loaded,
        method,
        ratio,
        task=opened,
        tokenizer=words,
        recover=recover,
        finetune=trains if finetune else False,
        learning=trains,
        out=out,
        seed=trains.seed,
        baseline=baseline,
        options=own,
        name=model,
        command=shlex.join(["headcount", *sys.argv[1:]]),
        overwrite=overwrite,
        report=talk if is_first() else None,
        note=warn if is_first() else lambda text: None,
        inputs=read_texts(inputs, loaded, words, trains.max_length),
        samples=samples,
        split=split,
        limit=limit,
        max_length=trains.max_length,
        draws=draws,
        device=device,
        fresh=fresh,
    )
    if not is_first():
        return  # the first of several processes speaks for all
    if found.trace is not None and can_draw():
        _draw(found.trace, out)
    data = {**found.record, "mask": found.mask, "out": out}
    emit(data, as_json=as_json, table=_page(found.record))


def _draw(trace: Trace, out: Path) -> None:
    """Figures of the gates beside their trace."""
    from headcount.report.figures import save_both
    from headcount.report.gates import maps_figure, path_figure
    from headcount.training.checkpoints import sweep

    sweep(out)  # a kill while they were drawn
    save_both(maps_figure(trace), out / "gates")
    save_both(path_figure(trace), out / "gates-path")


def _page(record: dict[str, Any]) -> Table:
    heads, counts, scores = record["heads"], record["parameters"], record.get("scores")
    rows: list[tuple[Any, ...]] = []
    for name, which in (("all heads", "before"), (_name(record), "after")):
        kept = heads["kept"] if which == "after" else ""
        row = [name, str(heads[which]), kept, parameters(counts[which])]
        if scores is not None:
            each = scores[which]
            row += [scored(each["score"]), interval(each)]
            row += [scores["lost"] if which == "after" else "", str(each["n"])]
        rows.append(tuple(row))
    columns = ["", "heads", "kept per layer", "parameters"]
    if scores is not None:
        columns += [scores["metric"], "95 % interval", "from all heads", "n"]
    if scores is not None and "random" in scores:
        draw = scores["random"]
        spread = f"{scored(draw['worst'])} to {scored(draw['best'])}"
        what = f"random, mean of {draw['draws']}"
        rows.append((what, str(heads["after"]), "", "", scored(draw["mean"]), spread, "", ""))
    built = table(columns, rows)
    built.caption, built.caption_justify = record["rows_said"] or None, "left"
    return built


def _name(record: dict[str, Any]) -> str:
    parts = [record["method"]]
    parts += ["recovered"] if record["recover"] else []
    parts += ["fine-tuned"] if record["finetune"] else []
    return ", ".join(parts)
