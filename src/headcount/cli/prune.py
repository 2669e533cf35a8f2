"""`headcount prune MODEL --method M --ratio R --out DIR`: prune a model and score the result."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rich.console import Group

from headcount.cli import groups
from headcount.cli import method_options as cuts
from headcount.cli.common import Json, can_draw, emit, warn
from headcount.cli.progress import talk
from headcount.heads.uniform import kept_at
from headcount.pruning.methods import name_of
from headcount.repair.repairs import repair_name
from headcount.runs.advice import choose
from headcount.runs.kinds.prune import read_ratio
from headcount.runs.prune_result import PruneResult
from headcount.views.gates import save_figures
from headcount.views.tables.grid import kept_grid
from headcount.views.tables.pruning import prune_table


def prune(
    model: groups.Model,
    /,
    *,
    out: Path,
    method: str | None = None,
    ratio: float | Literal["free"] | None = None,
    task: str | None = None,
    uniform: bool = False,
    recover: bool | None = None,
    finetune: bool = False,
    baseline: int = 3,
    cut: cuts.CutOptions = cuts.CUT,
    as_json: Json = False,
) -> None:
    """Select the heads to keep, remove the others, repair the model if wanted, score and save it.

    Of H heads ⌈H (1 - ratio)⌉ are kept. Options of a method: `headcount prune --method NAME
    --help`; of training: `headcount prune --finetune --help`. After a crash, run the same command
    again to resume.

    **Examples:**

    - `headcount prune ./mrpc --ratio 0.5 --task mrpc --data glue --out small`
    - `headcount prune ./bert --ratio 0.5 --out small` (no data needed)

    Parameters
    ----------
    out
        The folder to write: model, mask.json, record.json, card.
    method
        See `headcount ls methods`; by default surgeon with a task, cluster without.
    ratio
        Fraction of heads to remove, 0 to 1, or free.
    task
        Task to score on, before and after; see `headcount ls tasks`.
    uniform
        Keep as many key-value heads in every layer, for `export --to stock`; the loss against
        layers that are free to differ is printed beside it.
    recover
        Short for --repair recover: solve the output projections again, without training.
    finetune
        Short for --repair finetune: train on the task after pruning.
    baseline
        Number of random prunings of the same size to compare with.
    """
    from headcount.runs.prune import prune as run
    from headcount.training.processes import is_first

    rows = cut.rows()
    trains = cut.train()
    named = None if method is None else cut.methods([method])[0]
    subject = cut.subject(model, task, trains=finetune or "finetune" in cut.repair)
    if recover is None:
        recover = method is None and task is not None and not subject.fresh and not cut.repair
    repair = cut.repairs(recover=recover, finetune=finetune)
    choice = choose(named, repair, task=task is not None, fresh=subject.fresh)
    if named is None and cut.chosen.given():
        named = cut.methods([name_of(choice.method)])[0]
    if cut.dry_run:
        share = read_ratio(choice.method, ratio)
        kept = None if share is None else kept_at(subject.layout, share, uniform=uniform)
        plan = {"class": type(subject.model).__name__, "heads": len(subject.layout), "kept": kept}
        plan |= {"method": name_of(choice.method), "repair": list(map(repair_name, repair))}
        if is_first():
            groups.would("prune", plan, as_json)
        return
    figures = choice.method.needs == "training" and is_first() and can_draw()
    pruned = run(
        subject,
        named,
        ratio,
        uniform=uniform,
        repair=repair,
        learning=trains,
        calibration=cut.calibrating(task),
        scoring=rows,
        baseline=baseline,
        seed=cut.seed,
        out=out,
        overwrite=cut.overwrite,
        command=groups.command_line(),
        report=talk if is_first() else None,
        note=warn if is_first() else lambda text: None,
        logging=cut.logging.on(),
    )
    if is_first():  # one of several processes prints for all
        if pruned.trace is not None and figures:
            save_figures(pruned.trace, out)
        data = {**pruned.record.to_json(), "out": out}
        table = Group(prune_table(pruned.record.result_as(PruneResult)), kept_grid(pruned.mask))
        emit(data, as_json=as_json, table=table)
