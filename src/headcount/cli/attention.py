"""`headcount attention MODEL [PRUNED] --text …`: attention before and after pruning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headcount.cli import groups
from headcount.cli.common import Json, can_draw, emit, plain, warn


def attention(
    model: groups.Model,
    pruned: Annotated[str | None, Parameter(help="The same model with heads removed.")] = None,
    /,
    *,
    text: Annotated[str, Parameter(help="The text that the model reads.")],
    sentence: groups.SentenceFlags = groups.SENTENCE_FLAGS,
    out: Annotated[Path | None, Parameter(help="Write attention.json and figures here.")] = None,
    model_options: groups.ModelFlags = groups.MODEL_FLAGS,
    as_json: Json = False,
) -> None:
    """Show the attention of one text: of all heads of a model, or before and after pruning.

    With --out the maps are drawn (PNG and SVG, a figure for each stack): all heads in a grid of
    layers × heads, removed ones hatched; with --layer or --head large, with tokens.

    For each head it prints the entropy of its attention in bits, the mean distance in tokens, and
    the token it attends to most; with two models also the Jensen–Shannon divergence in bits.

    **Examples:**

    - `headcount attention ./mrpc ./small --text "The lawyer sees the judge." --out maps`
    - `headcount attention ./mrpc ./small --text "The lawyer sees the judge." --layer 5 --head 2
      --out head`
    - `headcount attention ./nmt --text "A dog runs." --target "Ein Hund läuft." --json`
    """
    figures = out is not None and can_draw()
    given = [model] if pruned is None else [model, pruned]
    loaded, tokenizer = groups.open_several(given, model_options.on())
    from headcount.changes.sentence import attention as look
    from headcount.views.attention import save
    from headcount.views.tables.scores import attention_table

    options = sentence.on()
    maps = look(
        loaded[0],
        text,
        pruned=loaded[1] if pruned is not None else None,
        pair=options.pair,
        target=options.target,
        tokenizer=tokenizer,
        max_length=options.max_length,
    ).only(stack=options.stack, layers=options.layer, heads=options.head)
    if maps.cut:
        warn(f"{maps.cut} tokens were truncated: more than --max-length, or than the model takes.")
    named = {"model": model, "pruned": pruned, "command": groups.command_line()}
    data = plain({**named, **maps.to_json()})
    if out is not None:
        names, large = [Path(name).name for name in given], bool(options.layer or options.head)
        save(maps, data, out, names, large, figures=figures)
    emit(data, as_json=as_json, table=attention_table(data))
