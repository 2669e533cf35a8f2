"""`headcount remove MODEL --keep HEADS --out DIR`: take heads out of a model and save the rest."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from headcount.cli import groups
from headcount.cli.common import Json, emit
from headcount.cli.masks import mask_of
from headcount.views.tables.amounts import parameters
from headcount.views.tables.columns import table


def remove(
    model: groups.Model,
    /,
    *,
    keep: Annotated[str, Parameter(name=("--keep", "--mask"), help=f"{groups.KEEP}.")],
    out: groups.NewFolder,
    opening: groups.Loaded = groups.LOADED,
    as_json: Json = False,
) -> None:
    """Take heads out of a model, verify what is left against the masked model, and save it.

    Examples: `--keep 777322`, `--keep 12,10,7,7,3,0`, `--keep "encoder:888888 cross:444444"`,
    `--keep mask.json`. A number keeps the first heads of its layer.
    """
    from headcount.models.load import load
    from headcount.models.numbers import original_mask
    from headcount.models.remove import remove as cut

    full = load(model, **opening.on().loading)
    mask = mask_of(keep, full)
    small = cut(full, mask)
    small.save_pretrained(out)
    before, after = full.num_parameters(), small.num_parameters()
    rows = [
        ("heads", f"{len(mask.layout)} -> {len(mask)}"),
        ("kept per layer", mask.pattern),
        ("parameters", f"{parameters(before)} -> {parameters(after)}"),
        ("folder", out),
    ]
    kept = original_mask(small, mask)
    data = {"model": model, "mask": kept, "parameters": {"before": before, "after": after}}
    emit(data | {"folder": out}, as_json=as_json, table=table(["what", "result"], rows))
