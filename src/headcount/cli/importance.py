"""`headcount importance MODEL --task T`: how much the task's loss feels each head."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table

from headcount.cli.common import Json, emit
from headcount.cli.masks import mask_of
from headcount.cli.progress import progress
from headcount.heads import Scores
from headcount.report.tables.columns import table
from headcount.tasks.source import Source

if TYPE_CHECKING:
    from headcount.sensitivity.gradients import Importance

Data = Annotated[Source, Parameter(name="*")]


def importance(
    model: str,
    /,
    *,
    task: str,
    source: Data = Source(),  # noqa: B008
    normalize: str = "none",
    split: str | None = None,
    limit: int | None = 1000,
    keep: Annotated[str | None, Parameter(name=("--keep", "--mask"))] = None,
    tokenizer: str | None = None,
    max_length: int = 128,
    out: Path | None = None,
    seed: int = 0,
    allow_pickle: bool = False,
    device: str = "auto",
    as_json: Json = False,
) -> None:
    """E |∂L/∂ξ| of every head: how much the loss of an example feels its gate, with its error.

    Examples: `headcount importance ./run --task mrpc --data glue --normalize l1` ·
    `headcount importance ./run --task sst2 --out importance.json --json`

    Parameters
    ----------
    model
        A model folder or a name on the hub, trained for the task.
    task
        Whose loss; see `headcount ls tasks`.
    normalize
        Divide every score by its layer's norm: none, l1 or l2.
    split
        Which rows; the train split when left out, or the task's own where it has none.
    limit
        Look at a seeded sample of so many rows.
    keep
        Heads that are open, as 777322, 6x12, JSON or mask.json; all when left out.
    tokenizer
        Folder or name of the tokenizer, where it is not with the model.
    max_length
        Tokens per row; longer rows are cut.
    out
        Write the scores to this JSON file as well.
    seed
        Seed of the sample and of masked tokens.
    allow_pickle
        Load weights that are pickled (.bin), which can run code.
    device
        Where to run: auto, cpu, cuda, cuda:1, mps.
    """
    from headcount.files import whole
    from headcount.models.devices import pick_device
    from headcount.models.find import layout
    from headcount.sensitivity.gradients import importance as measure
    from headcount.sensitivity.gradients import require_norm
    from headcount.tasks import TASKS
    from headcount.tasks.loading import hush, load_for_task, load_tokenizer
    from headcount.tasks.rows import labelled_rows

    hush()
    require_norm(normalize)
    opened = TASKS[task](source)
    loaded = load_for_task(model, opened, new_head=False, allow_pickle=allow_pickle)
    words = load_tokenizer(tokenizer or model)
    rows = labelled_rows(
        loaded, opened, words, split=split, limit=limit, seed=seed, max_length=max_length
    )
    loaded.to(pick_device(device))  # pyright: ignore[reportArgumentType]
    mask = mask_of(keep, layout(loaded)) if keep else None
    batches = progress((batch for _, batch in rows.batches(1024)), "gradients")
    found = measure(loaded, batches, normalize=normalize, mask=mask, kind=opened.kind)
    data = {"model": model, "task": task, "seed": seed, **found.to_json()}
    if out is not None:
        with whole(out) as partial:
            partial.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    emit(data, as_json=as_json, table=_page(found))


def _page(found: Importance) -> Table:
    """A row for each layer, a column for each head, and the layer's largest standard error."""
    errors = Scores(found.layout, found.stderr).by_layer()
    by_layer = found.by_layer()
    largest = max(found.values, default=0.0)
    digits = 3 if largest >= 0.05 else 5
    shown: dict[tuple[str, int], dict[int, str]] = {}
    for head, value in found.items():
        number = found.layout.original(head).index
        shown.setdefault((head.stack, head.layer), {})[number] = f"{value:.{digits}f}"
    widest = max((number + 1 for cells in shown.values() for number in cells), default=0)
    rows = []
    for stack, layers in by_layer.items():
        for layer in range(len(layers)):
            cells = shown.get((stack, layer), {})
            error = f"{max(errors[stack][layer], default=0.0):.{digits}f}"
            rows.append((f"{stack} {layer}", *(cells.get(i, "") for i in range(widest)), error))
    unit = {"none": "", "l1": ", ℓ1 per layer", "l2": ", ℓ2 per layer"}[found.normalize]
    title = f"E |∂L/∂ξ|{unit}, {found.n} examples, mean loss {found.loss:.4f}"
    return table(["layer", *map(str, range(widest)), "error ≤"], rows, title=title)
