"""`headcount curve MODEL --task T --out DIR`: score against the share of heads removed."""

from __future__ import annotations

from pathlib import Path

from headcount.cli import groups
from headcount.cli import method_options as cuts
from headcount.cli.common import Json, can_draw, emit, warn
from headcount.cli.progress import bar
from headcount.repair.repairs import describe_repairs
from headcount.runs.advice import CURVES, RATIOS
from headcount.views.tables.pruning import curve_table


def curve(
    model: groups.Model,
    /,
    *,
    task: groups.TaskName,
    out: Path,
    methods: tuple[str, ...] = CURVES,
    ratios: tuple[float, ...] = RATIOS,
    seeds: int = 5,
    recover: bool = False,
    finetune: bool = False,
    cut: cuts.CutOptions = cuts.CUT,
    executor_options: groups.ExecutorFlags = groups.EXECUTOR_FLAGS,
    as_json: Json = False,
) -> None:
    """Score a model at many ratios and by several methods, several seeds each.

    Finished points are kept in --out: the same command resumes after a crash, and one with more
    methods, ratios or seeds computes only what is missing. Written there: a record for each point,
    curve.parquet, curve.json, and where matplotlib is installed curve.png and .svg, and for the
    method cluster frequency.png and .svg, how often each head is removed.

    **Examples:**

    - `headcount curve ./run --task mrpc --data glue --out curve`
    - `headcount curve ./run --task sst2 --methods random,importance --ratios 0.25,0.5,0.75
      --recover --out curve`

    Parameters
    ----------
    out
        The folder of the curve.
    methods
        Methods with a ratio; see `headcount ls methods`.
    ratios
        Shares of heads to remove.
    seeds
        Prunings at each ratio, with other draws, clusterings, samples of rows and training seeds.
    recover
        Short for --repair recover: solve the output projections again after each pruning.
    finetune
        Short for --repair finetune: train after each pruning.
    """
    from headcount.studies.curve import curve as run
    from headcount.training.processes import require_one

    require_one("curve")
    figures = can_draw()
    named = cut.methods(methods)
    shares = list(dict.fromkeys(ratios))
    rows = cut.rows()
    repair = cut.repairs(recover=recover, finetune=finetune)
    subject = cut.subject(model, task, trains=any(step.needs == "training" for step in repair))
    if cut.dry_run:
        count = 1 + len(methods) * len(shares) * seeds
        groups.would("score", {"class": type(subject.model).__name__, "points": count}, as_json)
        return
    with cuts.going_on(out), bar(f"curve on {task}") as progress:
        result = run(
            subject,
            None,
            named,
            shares,
            seeds=seeds,
            repair=repair,
            calibration=cut.calibrating(task),
            scoring=rows,
            out=out,
            overwrite=cut.overwrite,
            progress=progress,
            note=warn,
            logging=cut.logging.on(),
            executor_options=executor_options.on(),
            command=groups.command_line(),
        )
    after = f", {describe_repairs(repair)}" if repair else ""
    result.save(out, "curve", groups.command_line())
    if figures:
        from headcount.views.studies import save_curve

        save_curve(result, out, f"{Path(model).name} on {task}{after}")
    emit(result.to_json() | {"out": out}, as_json=as_json, table=curve_table(result))
