"""`headcount evaluate MODEL --task T`: score a model on a task, with all heads or with masks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli import groups
from headcount.cli.common import Json, emit
from headcount.cli.masks import mask_of
from headcount.cli.values import MaskText
from headcount.errors import UsageError
from headcount.report.tables.columns import table


def evaluate(
    model: groups.Model,
    /,
    *,
    task: groups.TaskName,
    source: groups.Sourced = groups.SOURCED,
    mask: Annotated[
        list[MaskText] | None, Parameter(help=f"{groups.KEEP}; may come again.")
    ] = None,
    scoring: groups.Scored = groups.SCORED,
    fraction: Annotated[float | None, Parameter(help="Score this share of the rows.")] = None,
    tokens: Annotated[int | None, Parameter(help="Tokens per batch; as suits the device.")] = None,
    beams: Annotated[int, Parameter(help="Translations kept while translating.")] = 1,
    predictions: Annotated[Path | None, Parameter(help="Parquet file to write them to.")] = None,
    opening: groups.Opened = groups.OPENED,
    dry_run: groups.DryRun = False,
    as_json: Json = False,
) -> None:
    """Score a model on a task, with a 95 % interval.

    Several masks are scored in one pass over the data, together with the full model; the
    difference from all heads has an interval of its own, on the same rows.

    Examples: `headcount evaluate ./run --task mrpc --data glue --json` ·
    `headcount evaluate ./run --task sst2 --mask 6x12 --mask 12,12,12,0,0,0`
    """
    if scoring.given().get("limit") is not None and fraction is not None:
        raise UsageError("Pass --limit or --fraction, not both.")
    options = scoring.on() if fraction is None else replace(scoring.on(), limit=fraction)
    opened = groups.open_task(task, source)
    loaded, tokenizer, _ = groups.open_model(model, opening, opened)
    from headcount.heads import Mask
    from headcount.models.find import layout
    from headcount.report.tables.evaluate import page
    from headcount.training.evaluate import evaluate_rows
    from headcount.training.evaluation import differences, save_predictions
    from headcount.training.scored import scored_rows

    rows = scored_rows(loaded, opened, tokenizer, options)
    if dry_run:
        plan = {"class": type(loaded).__name__, "task": task, "rows": len(rows)}
        emit(plan, as_json=as_json, table=table(["would score", ""], list(plan.items())))
        return
    heads = layout(loaded) if mask else None
    masks = [Mask.full(heads), *(mask_of(text, loaded) for text in mask or [])] if heads else None
    how = {"tokenizer": tokenizer, "scoring": options, "tokens": tokens, "beams": beams}
    found = evaluate_rows(loaded, rows, masks, **how)
    if predictions is not None:
        save_predictions(found, predictions)
    lost = differences(found, options)
    data = found[0].to_json() | {"model": model}
    if mask:
        data["masks"] = [
            each.to_json() | {"differences": {one.metric: one.to_json() for one in changes}}
            for each, changes in zip(found[1:], lost, strict=True)
        ]
    emit(data, as_json=as_json, table=page(found, lost))
