"""`headcount remove MODEL --keep HEADS --out DIR`: remove heads from a model and save it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from headcount.cli import groups
from headcount.cli.common import Json, emit
from headcount.views.tables.pruning import removed_table


def remove(
    model: groups.Model,
    /,
    *,
    keep: Annotated[str, Parameter(name=("--keep", "--mask"), help=f"{groups.KEEP}.")],
    out: groups.NewFolder,
    probe: groups.Probe = None,
    model_options: groups.WeightFlags = groups.WEIGHT_FLAGS,
    as_json: Json = False,
) -> None:
    """Remove heads from a model, verify the result against the masked model, and save it.

    A number keeps the first heads of its layer.

    **Examples:**

    - `headcount remove ./bert --keep 777322 --out small`
    - `headcount remove ./bert --keep 12,10,7,7,3,0 --out small`
    - `headcount remove ./nmt --keep "encoder:888888 cross:444444" --out small`
    - `headcount remove ./bert --keep mask.json --out small`
    - `headcount remove ./tower --keep 12x8 --probe inputs.safetensors --out small`
    """
    from headcount.models.find import layout
    from headcount.models.load import load
    from headcount.models.numbers import original_mask, read_mask
    from headcount.models.probes import read_probe
    from headcount.models.remove import remove_sharing

    inputs = None if probe is None else read_probe(probe)
    full = load(model, **model_options.on().loading)
    mask = read_mask(keep, full, layout(full))
    small = remove_sharing(full, mask, probe=inputs)  # which is saved, and that is all
    small.save_pretrained(out)
    before, after = full.num_parameters(), small.num_parameters()
    kept, sizes = original_mask(small, mask), {"before": before, "after": after}
    data = {"model": model, "mask": kept, "parameters": sizes, "folder": out}
    emit(data, as_json=as_json, table=removed_table(mask, sizes, out))
