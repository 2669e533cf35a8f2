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


def evaluate(
    model: groups.Model,
    /,
    *,
    task: groups.TaskName,
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
    """
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
