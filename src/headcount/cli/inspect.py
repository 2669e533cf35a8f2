"""`headcount inspect MODEL`: which heads a model has and what they cost, from its config alone."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from headcount.cli.common import Json, emit, say
from headcount.views.tables.inspect import cost_table

Length = Annotated[
    int | None, Parameter(help="Sequence length of the FLOPs; 128, or as many tokens as fit.")
]


def inspect(model: str, /, *, length: Length = None, as_json: Json = False) -> None:
    """Show which heads a model has: stacks, layers, heads, and what each attention module costs.

    Needs the config only, not the weights. FLOPs count every matrix product of one example, two
    for each multiply-add; memory is that of the parameters in the dtype the model was saved in.

    Parameters
    ----------
    model
        A model folder, a config.json, or a name on the hub.
    """
    from headcount.costs.cost import inspect as look

    cost = look(model, length=length)
    emit(cost.to_json(), as_json=as_json, table=cost_table(cost))
    if cost.uncounted:
        say(f"headcount: {cost.uncounted}")
