"""`headcount evaluate MODEL --task T`: score a model on a task, with all heads or with masks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table

from headcount.cli.common import Json, emit
from headcount.cli.masks import mask_of
from headcount.cli.values import MaskText
from headcount.errors import UsageError
from headcount.report.tables.columns import table
from headcount.tasks.source import Source
from headcount.training.scoring import Scoring

if TYPE_CHECKING:
    from headcount.tasks.metrics import Difference
    from headcount.training.evaluation import Evaluation

Data = Annotated[Source, Parameter(name="*")]


def evaluate(
    model: str,
    /,
    *,
    task: str,
    source: Data = Source(),  # noqa: B008
    split: str | None = None,
    mask: list[MaskText] | None = None,
    tokenizer: str | None = None,
    limit: int | None = None,
    fraction: float | None = None,
    max_length: int = 128,
    tokens: int | None = None,
    draws: int = 1000,
    beams: int = 1,
    predictions: Path | None = None,
    seed: int = 0,
    allow_pickle: bool = False,
    device: str = "auto",
    dry_run: bool = False,
    as_json: Json = False,
) -> None:
    """Score a model on a task, with a 95 % interval.

    Several masks are scored in one pass over the data, together with the full model; the
    difference from all heads has an interval of its own, on the same rows.

    Examples: `headcount evaluate ./run --task mrpc --data glue --json` ·
    `headcount evaluate ./run --task sst2 --mask 6x12 --mask 12,12,12,0,0,0`

    Parameters
    ----------
    model
        A model folder or a name on the hub.
    task
        What to score on; see `headcount ls tasks`.
    split
        Which rows; the task's dev split when left out.
    mask
        Heads to keep, as 777322, 6x12, JSON or mask.json; may be given several times.
    tokenizer
        Folder or name of the tokenizer, where it is not with the model.
    limit
        Score a seeded sample of so many rows.
    fraction
        Score this share of the rows.
    max_length
        Tokens per row; longer rows are cut.
    tokens
        Tokens per batch, padding included; what suits the device when left out.
    draws
        Draws of the bootstrap behind the interval.
    beams
        Translations kept while translating; 1 is greedy.
    predictions
        Write what was predicted for every row to this Parquet file.
    seed
        Seed of the sample, of masked tokens and of the interval.
    allow_pickle
        Load weights that are pickled (.bin), which can run code.
    device
        Where to run: auto, cpu, cuda, cuda:1, mps.
    dry_run
        Say what would be done, and stop.
    """
    if limit is not None and fraction is not None:
        raise UsageError("Pass --limit or --fraction, not both.")
    scoring = Scoring(
        split=split,
        limit=fraction if fraction is not None else limit,
        seed=seed,
        draws=draws,
        max_length=max_length,
    )
    from headcount.heads import Mask
    from headcount.models.devices import pick_device
    from headcount.models.find import layout
    from headcount.tasks import TASKS
    from headcount.tasks.loading import hush, load_for_task, load_tokenizer, room
    from headcount.tasks.sampling import rows_of
    from headcount.training.evaluate import evaluate as score
    from headcount.training.evaluation import difference, save_predictions

    hush()
    opened = TASKS[task](source)
    loaded = load_for_task(model, opened, new_head=False, allow_pickle=allow_pickle)
    words = load_tokenizer(tokenizer or model)
    settings = {"tokenizer": words, "scoring": scoring, "tokens": tokens, "beams": beams}
    if dry_run:
        how = {"limit": scoring.limit, "seed": seed, "max_length": room(loaded, max_length)}
        rows = rows_of(opened, words, split, **how)[1]
        plan = {"class": type(loaded).__name__, "task": task, "rows": len(rows)}
        emit(plan, as_json=as_json, table=table(["would score", ""], list(plan.items())))
        return
    loaded.to(pick_device(device))  # pyright: ignore[reportArgumentType]
    if mask:
        heads = layout(loaded)
        masks = [Mask.full(heads), *(mask_of(text, heads) for text in mask)]
        found = score(loaded, opened, masks, **settings)
    else:
        found = [score(loaded, opened, **settings)]
    if predictions is not None:
        save_predictions(found, predictions)
    lost = [
        [
            difference(found[0], each, metric=score.metric, draws=draws, seed=seed)
            for score in each.scores
        ]
        for each in found[1:]
    ]
    data = found[0].to_json() | {"model": model}
    if mask:
        data["masks"] = [
            each.to_json() | {"differences": {one.metric: one.to_json() for one in changes}}
            for each, changes in zip(found[1:], lost, strict=True)
        ]
    emit(data, as_json=as_json, table=_page(found, lost))


def _page(found: list[Evaluation], lost: list[list[Difference]]) -> Table:
    rows = [
        (
            "all" if each.mask is None or not each.mask.dropped else each.mask.pattern,
            score.metric,
            score.shown,
            score.interval,
            *([str(change) if change else ""] if lost else []),
            each.n,
            f"{each.seconds:.2f}",
        )
        for each, changes in zip(found, [[None] * len(found[0].scores), *lost], strict=True)
        for score, change in zip(each.scores, changes, strict=True)
    ]
    against = ["from all heads"] if lost else []
    columns = ["heads kept", "metric", "score", "95 % interval", *against, "n", "seconds"]
    return table(columns, rows, title=f"{found[0].task} {found[0].split}")
