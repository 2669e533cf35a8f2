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
        list[MaskText] | None, Parameter(help=f"{groups.KEEP}; may come again.")
    ] = None,
    scoring: groups.ScoringFlags = groups.SCORING_FLAGS,
    fraction: Annotated[float | None, Parameter(help="Score this share of the rows.")] = None,
    tokens: Annotated[int | None, Parameter(help="Tokens per batch; as suits the device.")] = None,
    beams: Annotated[int, Parameter(help="Translations kept while translating.")] = 1,
    predictions: Annotated[Path | None, Parameter(help="Parquet file to write them to.")] = None,
    model_options: groups.ModelFlags = groups.MODEL_FLAGS,
    dry_run: groups.DryRun = False,
    as_json: Json = False,
) -> None:
    """Score a model on a task, with a 95 % interval.

    Several masks are scored in one pass over the data, together with the full model; the
    difference from all heads has an interval of its own, on the same rows.

    **Examples:**

    - `headcount evaluate ./run --task mrpc --data glue --json`
    - `headcount evaluate ./run --task sst2 --mask 6x12 --mask 12,12,12,0,0,0`
    """
    if scoring.given().get("limit") is not None and fraction is not None:
        raise UsageError("Pass --limit or --fraction, not both.")
    options = scoring.on() if fraction is None else replace(scoring.on(), limit=fraction)
    asked = Evaluate(scoring=options, masks=tuple(mask or ()), tokens=tokens, beams=beams)
    run = groups.run_of("evaluate", model, asked, task, source, model_options, options.seed)
    if dry_run:
        groups.would_run("score", run, as_json)
        return
    found = groups.executed(run)
    from headcount.training.evaluation import save_predictions
    from headcount.views.tables.scores import evaluation_table

    scores, lost = found.value
    if predictions is not None:
        save_predictions(scores, predictions)
    emit(found.record.to_json(), as_json=as_json, table=evaluation_table(scores, lost))
