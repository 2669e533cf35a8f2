"""`headcount search MODEL --task T --max-drop 1% --out DIR`: how many heads does it need?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headcount.cli import groups
from headcount.cli import method_options as cuts
from headcount.cli.common import Json, can_draw, emit, warn
from headcount.cli.progress import talk
from headcount.studies.search.options import METHODS_TRIED
from headcount.views.tables.search import search_table


def search(
    model: groups.Model,
    /,
    *,
    task: groups.TaskName,
    out: Path,
    max_drop: str | None = None,
    max_latency: str | None = None,
    max_parameters: str | None = None,
    max_cache: str | None = None,
    uniform: bool = False,
    methods: tuple[str, ...] = METHODS_TRIED,
    recover: bool | None = None,
    finetune: bool = False,
    baseline: int = 3,
    details: bool = True,
    search_options: groups.SearchFlags = groups.SEARCH_FLAGS,
    cut: cuts.CutOptions = cuts.CUT,
    executor_options: groups.ExecutorFlags = groups.EXECUTOR_FLAGS,
    as_json: Json = False,
) -> int | None:
    """Find the fewest heads within a loss, or the best score within a budget, stated in a sentence.

    One bound at most; without any it is the knee of the curve. The selection
    set and the held-out set share no rows. Every pruning that is tried is kept in --out: the same
    command again resumes. Exit code 6: no pruned model is within the bound (it says how close the
    nearest came), or the selected one is not within it on the held-out set.

    **Examples:**

    - `headcount search ./mrpc --task mrpc --data glue --max-drop 1% --out found`
    - `headcount search ./mrpc --task mrpc --data glue --max-latency 0.8x --out found`

    Parameters
    ----------
    out
        The folder to write: search.json, the model, a record of every pruning, figures.
    max_drop
        Largest loss in score: 1% of the full model's, 0.01, or 0.
    max_latency
        Longest time of a forward pass: 0.8x of the full model's, or 12ms.
    max_parameters
        Most parameters: 0.8x of the full model's, or 20M.
    max_cache
        Most bytes of key-value cache a token: 0.5x of the full model's, or bytes.
    uniform
        Keep as many key-value heads in every layer, for `export --to stock`.
    methods
        Methods with a ratio, of which the best is taken; see `headcount ls methods`.
    recover
        Short for --repair recover, which is usual unless a method trains gates.
    finetune
        Short for --repair finetune: train after each pruning.
    baseline
        Random prunings of the selected size to compare with.
    details
        Measure importance, roles and one example's attention for the page, on calibration rows.
    """
    from headcount.studies.search.search import search as run
    from headcount.training.processes import require_one

    require_one("search")
    limits: Any = {
        "max_drop": max_drop,
        "max_latency": max_latency,
        "max_parameters": max_parameters,
        "max_cache": max_cache,
    }
    named, rows, trains = cut.methods(methods), cut.rows(), cut.train()
    figures = can_draw()
    repair = cut.repairs(recover=bool(recover), finetune=finetune)
    subject = cut.subject(model, task, trains=any(step.needs == "training" for step in repair))
    if cut.dry_run:
        plan = {"class": type(subject.model).__name__, "heads": len(subject.layout)}
        groups.would("search", plan | {"methods": list(methods)} | limits, as_json)
        return None
    with cuts.going_on(out):
        result = run(
            subject,
            None,
            named,
            **limits,
            uniform=uniform,
            learning=trains,
            calibration=cut.calibrating(task),
            repair=repair if repair or recover is not None else None,
            scoring=rows,
            search_options=search_options.on(),
            baseline=baseline,
            details=details,
            seed=cut.seed,
            out=out,
            overwrite=cut.overwrite,
            executor_options=executor_options.on(),
            command=groups.command_line(),
            report=talk,
            note=warn,
        )
    data = result.to_json()
    if figures:
        from headcount.views.studies import save_search

        save_search(data, out)
    emit(data, as_json=as_json, table=search_table(data))
    return None if result.met else 6
