"""`headcount inspect MODEL`: which heads a model has and what they cost, from its config alone."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from headcount.cli import groups
from headcount.cli.common import Json, emit, say
from headcount.views.tables.inspect import cost_table

Length = Annotated[
    int | None,
    Parameter(help="Sequence length of the FLOPs; the context, or 128, or as many as fit."),
]
Context = Annotated[
    int | None,
    Parameter(help="Tokens of each user of a decoder: what heads could save at most there."),
]
Batch = Annotated[int, Parameter(help="Users at once, with --context.")]


def inspect(
    model: str,
    /,
    *,
    length: Length = None,
    context: Context = None,
    batch: Batch = 1,
    probe: groups.Probe = None,
    as_json: Json = False,
) -> None:
    """Show which heads a model has: stacks, layers, heads, and what each attention module costs.

    Needs the config only, not the weights. FLOPs count every matrix product of one example, two
    for each multiply-add; memory is that of the parameters in the dtype the model was saved in.
    With --context, what all heads, half the key-value heads and a whole layer could save at most of
    weights, cache, and the bytes read for a token, before anything is pruned.

    Parameters
    ----------
    model
        A model folder, a config.json, or a name on the hub.
    """
    from headcount.costs.cost import inspect as look

    inputs = None
    if probe is not None:
        from headcount.models.probes import read_probe

        inputs = read_probe(probe)
    cost = look(model, length=length, context=context, batch=batch, probe=inputs)
    emit(cost.to_json(), as_json=as_json, table=cost_table(cost))
    if cost.uncounted:
        say(f"headcount: {cost.uncounted}")
