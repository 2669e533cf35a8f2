"""`headcount evaluate MODEL --task T`: score a model on a task, with all heads or with masks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.base.errors import UsageError
from headcount.cli import groups
from headcount.cli.common import Json, emit
from headcount.cli.values import MaskText
from headcount.runs.kinds.evaluate import Evaluate
from headcount.runs.kinds.lm_eval import LmEval
from headcount.training.scoring import Scoring


def evaluate(
    model: groups.Model,
    /,
    *,
    task: groups.AnyTask = None,
    source: groups.SourceFlags = groups.SOURCE_FLAGS,
    mask: Annotated[
        list[MaskText] | None, Parameter(help=f"{groups.KEEP}; may be repeated.")
    ] = None,
    scoring: groups.ScoringFlags = groups.SCORING_FLAGS,
    fraction: Annotated[float | None, Parameter(help="Fraction of the rows to score.")] = None,
    tokens: Annotated[
        int | None, Parameter(help="Tokens per batch; by default, depends on the device.")
    ] = None,
    beams: Annotated[int, Parameter(help="Beam size of texts that are written.")] = 1,
    predictions: Annotated[
        Path | None, Parameter(help="Write the predictions to this Parquet file.")
    ] = None,
    lm_eval: Annotated[
        list[str] | None,
        Parameter(help="Tasks of lm-evaluation-harness, instead of --task."),
    ] = None,
    include_path: Annotated[
        Path | None,
        Parameter(help="With --lm-eval: folder with YAML files of your own tasks; may run code."),
    ] = None,
    against: Annotated[
        str | None,
        Parameter(help="With --lm-eval: another model; differences are paired item by item."),
    ] = None,
    shots: Annotated[int | None, Parameter(help="With --lm-eval: examples in the prompt.")] = None,
    model_options: groups.ModelFlags = groups.MODEL_FLAGS,
    dry_run: groups.DryRun = False,
    as_json: Json = False,
) -> None:
    """Score a model on a task, with a 95 % interval.

    Several masks are scored in one pass over the data, together with the full model; differences
    from the full model have paired intervals on the same rows.

    **Examples:**

    - `headcount evaluate ./run --task mrpc --data glue --json`
    - `headcount evaluate ./run --task sst2 --mask 6x12 --mask 12,12,12,0,0,0`
    - `headcount evaluate ./small --lm-eval piqa --against ./model`
    """
    if lm_eval:
        others = {"--task": task, "--mask": mask, "--fraction": fraction, "--tokens": tokens}
        others |= {"--predictions": predictions, "--split": scoring.given().get("split")}
        others |= {f"--{name.replace('_', '-')}": value for name, value in source.given().items()}
        if wrong := [name for name, value in others.items() if value is not None]:
            raise UsageError(f"--lm-eval has rows and metrics of its own: leave out {wrong[0]}.")
        _evaluate_by_harness(
            model, lm_eval, include_path, against, shots, scoring.on(), model_options,
            dry_run, as_json,
        )  # fmt: skip
        return
    for name, value in (("include-path", include_path), ("against", against), ("shots", shots)):
        if value is not None:
            raise UsageError(f"--{name} is for --lm-eval, which is missing.")
    if task is None:
        raise UsageError(
            "What is the model scored on? Pass --task (see headcount ls tasks), or --lm-eval with "
            "tasks of lm-evaluation-harness."
        )
    if scoring.given().get("limit") is not None and fraction is not None:
        raise UsageError("Pass --limit or --fraction, not both.")
    options = scoring.on() if fraction is None else replace(scoring.on(), limit=fraction)
    evaluation = Evaluate(scoring=options, masks=tuple(mask or ()), tokens=tokens, beams=beams)
    run = groups.run_of("evaluate", model, evaluation, task, source, model_options, options.seed)
    if dry_run:
        groups.would_run("score", run, as_json)
        return
    result = groups.executed(run)
    from headcount.training.evaluation import save_predictions
    from headcount.views.tables.scores import evaluation_table

    scores, lost = result.value
    if predictions is not None:
        save_predictions(scores, predictions)
    emit(result.record.to_json(), as_json=as_json, table=evaluation_table(scores, lost))


def _evaluate_by_harness(
    model: str,
    tasks: list[str],
    include_path: Path | None,
    against: str | None,
    shots: int | None,
    scoring: Scoring,
    model_options: groups.ModelFlags,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Score a model by lm-evaluation-harness, and print its record or a table."""
    if isinstance(scoring.limit, float):
        raise UsageError("With --lm-eval a limit is a number of items.")
    options = LmEval(
        tasks=tuple(tasks),
        include_path=include_path,
        against=against,
        limit=scoring.limit,
        shots=shots,
        bootstrap=scoring.bootstrap,
    )
    run = groups.run_of(
        "lm-eval", model, options, None, groups.SOURCE_FLAGS, model_options, scoring.seed
    )
    if dry_run:
        groups.would_run("score", run, as_json)
        return
    result = groups.executed(run)
    from headcount.views.tables.scores import harness_table

    emit(result.record.to_json(), as_json=as_json, table=harness_table(result.value))
