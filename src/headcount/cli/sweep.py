"""`headcount sweep MODEL --task T --over mu=0.1,1 --out DIR`: one number of gates varied."""

from __future__ import annotations

from pathlib import Path

from headcount.base.errors import UsageError
from headcount.cli import groups
from headcount.cli import method_options as cuts
from headcount.cli.common import Json, can_draw, emit, warn
from headcount.cli.progress import bar
from headcount.views.tables.pruning import sweep_table


def sweep(
    model: groups.Model,
    /,
    *,
    task: groups.TaskName,
    over: tuple[str, ...],
    out: Path,
    method: str = "straight-through",
    seeds: int = 3,
    cut: cuts.SweepOptions = cuts.SWEEP,
    executor_options: groups.ExecutorFlags = groups.EXECUTOR_FLAGS,
    as_json: Json = False,
) -> None:
    """Train gates with several values of one of their options: how many heads stay, and the score.

    There is no ratio: the value decides how many heads stay. Finished runs are kept in --out: the
    same command resumes after a crash, and one with more values or seeds computes only what is
    missing. Written there: a record for each run, sweep.parquet, sweep.json, and where matplotlib
    is installed sweep.png and .svg.

    **Examples:**

    - `headcount sweep ./run --task cola --over mu=1e-4,1e-3,1e-2 --out sweep`
    - `headcount sweep ./run --task cola --method hard-concrete --over mu=0.01,0.1,1 --out sweep`

    Parameters
    ----------
    over
        The option and its values, as in mu=1e-4,1e-3,1e-2.
    out
        The folder of the sweep.
    method
        straight-through or hard-concrete.
    seeds
        Runs with each value.
    """
    from headcount.studies.sweep import check_sweep, read_over
    from headcount.studies.sweep import sweep as run
    from headcount.training.processes import require_one

    require_one("sweep")
    figures = can_draw()
    option, values = read_over(",".join(over))
    named = cut.methods([method])[0]
    if option in cut.chosen.given():
        set_to = cut.chosen.given()[option]
        raise UsageError(f"'{option}' is swept over, so it cannot also be set to {set_to}.")
    check_sweep(named, option, values, seeds)
    subject = cut.subject(model, task)
    if cut.dry_run:
        groups.would("sweep", {"runs": len(values) * seeds, "over": option}, as_json)
        return
    with cuts.going_on(out), bar(f"sweep on {task}") as progress:
        result = run(
            subject,
            None,
            option,
            values,
            method=named,
            seeds=seeds,
            train=cut.train(),
            scoring=cut.rows(),
            out=out,
            overwrite=cut.overwrite,
            progress=progress,
            note=warn,
            logging=cut.logging.on(),
            executor_options=executor_options.on(),
            command=groups.command_line(),
        )
    result.save(out, "sweep", groups.command_line())
    if figures:
        from headcount.views.studies import save_sweep

        save_sweep(result, out, f"{Path(model).name} on {task}, {method}")
    emit(result.to_json() | {"out": out}, as_json=as_json, table=sweep_table(result))
