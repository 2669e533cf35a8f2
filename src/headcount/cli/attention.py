"""`headcount attention MODEL [PRUNED] --text …`: where each head looks, before and after a cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Group, RenderableType
from rich.text import Text

from headcount.cli.common import Json, emit, plain, say
from headcount.report.tables.columns import table

if TYPE_CHECKING:
    from headcount.changes.maps import AttentionMaps

Flag = Annotated[bool, Parameter(negative=())]
Numbers = Annotated[list[int] | None, Parameter(consume_multiple=True, negative=())]


def attention(
    model: str,
    pruned: str | None = None,
    /,
    *,
    text: str,
    pair: str | None = None,
    target: str | None = None,
    stack: str | None = None,
    layer: Numbers = None,
    head: Numbers = None,
    out: Path | None = None,
    max_length: int = 128,
    tokenizer: str | None = None,
    allow_pickle: Flag = False,
    device: str = "auto",
    as_json: Json = False,
) -> None:
    """Show the attention of one text: of all heads of a model, or before and after a cut.

    With --out the maps are drawn (PNG and SVG, a figure for each stack): all heads small, layers ×
    heads, those that are gone hatched in their place; with --layer or --head large, with tokens.

    For each head it tells the entropy of its attention in bits, how many tokens away it looks, and
    what it looks at most; with two models also how far they differ (Jensen–Shannon, in bits).

    Examples: `headcount attention ./mrpc ./small --text "The lawyer sees the judge." --out maps` ·
    `headcount attention ./mrpc ./small --text "The lawyer sees the judge." --layer 5 --head 2
    --out head` · `headcount attention ./nmt --text "A dog runs." --target "Ein Hund läuft." --json`

    Parameters
    ----------
    model
        A model folder or a name on the hub.
    pruned
        The same model with heads removed, and perhaps trained since.
    text
        What the model reads.
    pair
        A second text, for models of tasks with two.
    target
        What an encoder–decoder's decoder reads; left out, what MODEL writes itself.
    stack
        Only encoder, cross or decoder heads.
    layer
        Only these layers, counted from 0.
    head
        Only heads with these numbers, counted from 0 in their layer.
    out
        Write attention.json and figures to this folder.
    max_length
        Tokens of the text; what is longer is cut.
    tokenizer
        Folder or name of the tokenizer, where it is not with the models.
    allow_pickle
        Load weights that are pickled (.bin), which can run code: only if you trust them.
    device
        Where to run: auto, cpu, cuda, cuda:1, mps.
    """
    if out is not None:
        from headcount.report.figures import need_matplotlib

        need_matplotlib()
    from headcount.changes.sentence import attention as look
    from headcount.cli.transfer_inputs import load_model, shared_tokenizer
    from headcount.models.devices import pick_device
    from headcount.tasks.loading import hush

    hush()
    where = pick_device(device)
    given = [model] if pruned is None else [model, pruned]
    loaded = [load_model(name, None, allow_pickle).to(where) for name in given]
    maps = look(
        loaded[0],
        text,
        pruned=loaded[1] if pruned is not None else None,
        pair=pair,
        target=target,
        tokenizer=shared_tokenizer(tokenizer, *given),
        max_length=max_length,
    ).only(stack=stack, layers=layer, heads=head)
    if maps.cut:
        say(f"headcount: {maps.cut} tokens were cut: more than --max-length, or than the model.")
    data = plain({"model": model, "pruned": pruned, **maps.to_json()})
    if out is not None:
        _write(maps, data, out, [Path(name).name for name in given], bool(layer or head))
    emit(data, as_json=as_json, table=_page(data))


def _write(maps: AttentionMaps, data: Any, folder: Path, names: list[str], large: bool) -> None:
    """attention.json and a figure for each stack, each whole or not at all."""
    from headcount.files import whole
    from headcount.report.attention import closeup, overview
    from headcount.report.figures import save_both

    folder.mkdir(parents=True, exist_ok=True)
    for stack in maps.tokens:
        figure = (closeup if large else overview)(maps, stack, names)
        name = "attention" if len(maps.tokens) == 1 else f"attention-{stack}"
        save_both(figure, folder / name)
    with whole(folder / "attention.json") as partial:
        written = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
        partial.write_text(written + "\n", encoding="utf-8")


def _page(data: dict[str, Any]) -> RenderableType:
    two = data["pruned"] is not None
    many = any(row["run"] for row in data["heads"])
    rows = []
    for row in data["heads"]:
        name = f"{row['stack']}.{row['layer']}.{row['head']}"
        cells = [f"{name}, run {row['run']}" if many else name, *_cells(row)]
        if two:
            after = row["after"]
            cells += ["gone", "", "", ""] if after is None else _cells(after)
            cells += ["" if after is None else f"{row['divergence']:.3f}"]
        rows.append(cells)
    own = ["entropy, bits", "distance", "looks most at", "share"]
    columns = ["head", *own]
    if two:
        columns += [f"after: {own[0]}", *own[1:], "JS, bits"]
    told = [f"{stack}: {' '.join(each['keys'])}" for stack, each in data["tokens"].items()]
    return Group(table(columns, rows), Text("\n".join(told)))


def _cells(said: dict[str, Any]) -> list[str]:
    most = said["most_attended"]
    if most is None:
        return ["", "", "nothing", ""]
    distance = "" if said["distance"] is None else f"{said['distance']:.2f}"
    place = f"{most['token'] or ''} ({most['position']})".strip()
    return [f"{said['entropy']:.2f}", distance, place, f"{most['share']:.2f}"]
