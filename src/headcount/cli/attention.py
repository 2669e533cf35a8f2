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
    text: Annotated[str | None, Parameter(help="The text that the model reads.")] = None,
    sentence: groups.SentenceFlags = groups.SENTENCE_FLAGS,
    out: Annotated[Path | None, Parameter(help="Write attention.json and figures here.")] = None,
    model_options: groups.ModelFlags = groups.MODEL_FLAGS,
    as_json: Json = False,
) -> None:
    """Show the attention of one text or image: of all heads, or before and after pruning.

    With --out the maps are drawn (PNG and SVG, a figure for each stack): all heads in a grid of
    layers × heads, removed ones hatched; with --layer or --head large, with tokens. With --image
    they are drawn over the picture: what the class token attends to.

    For each head it prints the entropy of its attention in bits, the mean distance in tokens, and
    the token it attends to most; with two models also the Jensen–Shannon divergence in bits.

    **Examples:**

    - `headcount attention ./mrpc ./small --text "The lawyer sees the judge." --out maps`
    - `headcount attention ./mrpc ./small --text "The lawyer sees the judge." --layer 5 --head 2
      --out head`
    - `headcount attention ./vit ./small --image cat.png --out maps`
    - `headcount attention ./nmt --text "A dog runs." --target "Ein Hund läuft." --json`
    """
    from headcount.changes.options import require_one

    figures = out is not None and can_draw()
    given = [model] if pruned is None else [model, pruned]
    options = sentence.on()
    require_one(text, options.image)
    loaded, tokenizer = groups.open_several(
        given, model_options.on(), images=options.image is not None
    )
    from headcount.changes.sentence import attention as look
    from headcount.views.attention import save_figures
    from headcount.views.tables.scores import attention_table

    maps = look(
        loaded[0],
        text,
        image=options.image,
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
        out.mkdir(parents=True, exist_ok=True)
        if figures:
            save_figures(maps, out, names, large)
        maps.save(out, data)
    emit(data, as_json=as_json, table=attention_table(data))
