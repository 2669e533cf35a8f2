"""`headcount compare MODEL --task T --out DIR`: methods at equal sparsity and equal training."""

from __future__ import annotations

from pathlib import Path

from headcount.cli import groups
from headcount.cli import method_options as cuts
from headcount.cli.common import Json, emit, warn
from headcount.cli.progress import bar
from headcount.runs.advice import COMPARED, RECOVER
from headcount.views.tables.pruning import compare_table


def compare(
    model: groups.Model,
    /,
    *,
    task: groups.TaskName,
    out: Path,
    ratio: float = 0.5,
    methods: tuple[str, ...] = COMPARED,
    seeds: int = 5,
    cut: cuts.CutOptions = cuts.CUT,
    executor_options: groups.ExecutorFlags = groups.EXECUTOR_FLAGS,
    as_json: Json = False,
) -> None:
    """Prune a fine-tuned model by several methods, train all alike, and test against random.

    All keep the same number of heads and are trained once with the same options: after pruning, or
    together with the gates if a method learns them. Finished runs are kept in --out: the same
    command resumes after a crash, and one with more methods or seeds computes only what is missing.
    Written there: a record for each run, compare.parquet and compare.json.

    **Examples:**

    - `headcount compare ./run --task mrpc --data glue --ratio 0.5 --out compare`
    - `headcount compare ./run --task sst2 --methods random,subset,straight-through --steps 300
      --out compare`

    Parameters
    ----------
    out
        The folder of the comparison.
    ratio
        Share of heads to remove, 0 to 1.
    methods
        Methods with a ratio; see `headcount ls methods`. +recover after a name solves the output
        projections again before the training; all-heads trains without pruning.
    seeds
        Runs of each method, with other draws, clusterings, samples of rows and training seeds.
    """
    from headcount.studies.compare import check_labels
    from headcount.studies.compare import compare as run
    from headcount.training.processes import require_one

    require_one("compare")
    check_labels(methods)
    named = cut.methods([name.removesuffix(RECOVER) for name in methods])
    subject = cut.subject(model, task)
    if cut.dry_run:
        plan = {"class": type(subject.model).__name__, "runs": len(methods) * seeds, "ratio": ratio}
        groups.would("compare", plan, as_json)
        return
    with cuts.going_on(out), bar(f"comparing on {task}") as progress:
        result = run(
            subject,
            None,
            dict(zip(methods, named, strict=True)),
            ratio=ratio,
            seeds=seeds,
            train=cut.train(),
            calibration=cut.calibrating(task),
            scoring=cut.rows(),
            out=out,
            overwrite=cut.overwrite,
            progress=progress,
            note=warn,
            logging=cut.logging.on(),
            executor_options=executor_options.on(),
            command=groups.command_line(),
        )
    result.save(out, "compare", groups.command_line())
    emit(result.to_json() | {"out": out}, as_json=as_json, table=compare_table(result))
