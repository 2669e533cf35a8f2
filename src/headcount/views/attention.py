"""Attention maps drawn: all heads small, or a few large with their tokens.

As in AutoAttention, Figs 3 and 4.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.base.files import whole, write_json
from headcount.views.figures import STYLE, colour_bar, need_matplotlib, new_figure, save_both

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headcount.changes.maps import AttentionMaps, HeadUse, Map

MAP = "viridis"
GONE = {"facecolor": "#ececec", "edgecolor": "#c4c4c4", "hatch": "////", "linewidth": 0}
TICKS = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 1)
FEW = (0, 0.25, 1)
"""Numbers beside the scale, and beside one that is not high."""
CELL, SIDE = 0.5, 0.92
"""Inches from one small map to the next, and the share of it that a map fills."""


def save(
    maps: AttentionMaps,
    data: Any,
    folder: Path,
    names: Sequence[str],
    large: bool,
    *,
    figures: bool = True,
) -> None:
    """attention.json with `data`, attention.npz with the maps, and a figure for each stack."""
    folder.mkdir(parents=True, exist_ok=True)
    for stack in maps.tokens if figures else ():
        figure = (closeup if large else overview)(maps, stack, names)
        save_both(figure, folder / ("attention" if len(maps.tokens) == 1 else f"attention-{stack}"))
    arrays = {f"before/{run.head}/{run.run}": found for run, found in maps.before.items()}
    arrays |= {f"after/{run.head}/{run.run}": found for run, found in (maps.after or {}).items()}
    with whole(folder / "attention.npz") as partial:
        small: Any = {name: found.astype("float16") for name, found in arrays.items()}
        np.savez_compressed(partial, **small)
    write_json(folder / "attention.json", data)


def overview(maps: AttentionMaps, stack: str, names: Sequence[str]) -> Figure:
    """Layers × heads of one stack; with two models a layer has two rows, the second below.

    A head that is gone is hatched, in the place it had. `names` are the models'.
    """
    rows = list(dict.fromkeys((run.head.layer, run.run) for run in maps.before if _is(run, stack)))
    columns = sorted({run.head.index for run in maps.before if _is(run, stack)})
    two = maps.after is not None
    step = 2.2 if two else 1.0
    wide, high = len(columns) * CELL, len(rows) * step * CELL
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(1.05 * max(wide, 3.6) + (2.0 if two else 1.7), high + 1.5)
        axes = figure.add_subplot()
        image = None
        for run, before in maps.before.items():
            if not _is(run, stack):
                continue
            x = columns.index(run.head.index)
            y = step * rows.index((run.head.layer, run.run))
            image = _small(axes, before, x, y)
            if maps.after is not None:
                image = _small(axes, maps.after.get(run), x, y + 1) or image
        axes.set(xlim=(-0.05, len(columns)), ylim=(len(rows) * step, -0.05), aspect="equal")
        half = SIDE / 2
        axes.set_xticks([x + half for x in range(len(columns))], [str(x) for x in columns])
        many = any(run for _, run in rows)
        labels = [f"{layer}, run {run}" if many else str(layer) for layer, run in rows]
        places = [step * row + half for row in range(len(rows))]
        if two:
            axes.set_yticks([y + 1 for y in places], ["after"] * len(rows), minor=True)
            axes.tick_params(axis="y", which="minor", length=0, labelsize=6, labelcolor="#777777")
        axes.set_yticks(places, labels)
        axes.set(xlabel="head", ylabel="layer")
        axes.tick_params(length=0)
        _dress(image, [axes], axes, FEW if high < 1.6 else TICKS)
        _entitle(figure, maps, stack, names, wide=figure.get_figwidth())
    return figure


def closeup(maps: AttentionMaps, stack: str, names: Sequence[str]) -> Figure:
    """The heads of one stack that `maps` has, large, their tokens on the axes.

    With two models the second is drawn below the first; of a single head, to its right.
    """
    runs = [run for run in maps.before if _is(run, stack)]
    tokens = maps.tokens[stack]
    most = max(len(tokens.queries), len(tokens.keys))
    two = maps.after is not None
    side = min(6.0, max(2.2, (0.16 if len(runs) <= 2 else 0.11) * most))
    size = min(8.0, 72 * 0.8 * side / max(most, 1))
    columns = 2 if two and len(runs) == 1 else min(len(runs), 4)
    blocks = -(-len(runs) // columns)
    tall = two and len(runs) > 1
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(
            max(columns * (side + 0.2), 3.6) + 1.8, blocks * (2 if tall else 1) * (side + 0.5) + 1.6
        )
        grid = figure.subplots(blocks * (2 if tall else 1), columns, squeeze=False)
        shown, image = [], None
        for place, run in enumerate(runs):
            row, column = divmod(place, columns)
            row *= 2 if tall else 1
            image = _large(grid[row, column], maps.before[run], _name(run, two and "before"))
            shown.append(grid[row, column])
            if maps.after is not None:
                beside = grid[row + 1, column] if tall else grid[0, 1]
                after = maps.after.get(run)
                _large(beside, after, _name(run, "after" if after is not None else "gone"))
                shown.append(beside)
        for line in grid:
            drawn = [axes for axes in line if axes.images]
            for axes in line:
                _spell(axes, tokens, size, asks=axes in drawn[:1])
                axes.set_visible(axes in shown)
        _dress(image, shown, [axes for axes in grid[0] if axes in shown][-1])
        _entitle(figure, maps, stack, names, wide=figure.get_figwidth(), listed=False)
    return figure


def _is(run: HeadUse, stack: str) -> bool:
    return run.head.stack == stack


def _norm() -> Any:
    from matplotlib.colors import PowerNorm

    return PowerNorm(0.5, vmin=0, vmax=1)  # or all but the sharpest heads would look empty


def _small(axes: Any, attention: Map | None, x: float, y: float) -> Any:
    if attention is None:
        from matplotlib.patches import Rectangle

        axes.add_patch(Rectangle((x, y), SIDE, SIDE, **GONE))
        return None
    extent = (x, x + SIDE, y + SIDE, y)
    return axes.imshow(attention, MAP, norm=_norm(), extent=extent, interpolation="nearest")


def _large(axes: Any, attention: Map | None, title: str) -> Any:
    axes.set_title(title)
    if attention is None:
        from matplotlib.patches import Rectangle

        axes.add_patch(Rectangle((0, 0), 1, 1, transform=axes.transAxes, **GONE))
        axes.set(box_aspect=1)
        return None
    return axes.imshow(attention, MAP, norm=_norm(), interpolation="nearest", aspect="auto")


def _name(run: HeadUse, more: str | bool) -> str:
    text = f"layer {run.head.layer}, head {run.head.index}"
    text += f", run {run.run}" if run.run else ""
    return f"{text}: {more}" if more else text


def _spell(axes: Any, tokens: Any, size: float, *, asks: bool) -> None:
    """Tokens on the axes of a large map, where it has as many places as there are tokens."""
    axes.tick_params(length=0)
    if not axes.images:
        axes.set(xticks=[], yticks=[])
        return
    axes.set_box_aspect(1)
    queries, keys = axes.images[0].get_array().shape
    if (queries, keys) == (len(tokens.queries), len(tokens.keys)):
        axes.set_xticks(range(keys), tokens.keys, rotation=90, fontsize=size)
        axes.set_yticks(range(queries), tokens.queries if asks else [""] * queries, fontsize=size)


def _dress(image: Any, shown: Sequence[Any], beside: Any, ticks: Sequence[float] = TICKS) -> None:
    """No frames; the scale to the right of the map `beside`."""
    for each in shown:
        for side in each.spines.values():
            side.set_visible(False)
    if image is not None:
        bar = colour_bar(image, beside, "attention\n(square-root scale)", size=8)
        bar.set_ticks(list(ticks), labels=[f"{tick:g}" for tick in ticks])


def _entitle(
    figure: Figure,
    maps: AttentionMaps,
    stack: str,
    names: Sequence[str],
    *,
    wide: float,
    listed: bool = True,
) -> None:
    """Which models and stack above, the tokens below."""
    title = f"{stack.capitalize()} attention: {names[0]}"
    if maps.after is not None and maps.mask is not None:
        own = [head for head in maps.layout if head.stack == stack]
        kept = sum(head in maps.mask for head in own)
        title += f", and after the cut: {names[1]} ({kept} of {len(own)} heads)"
    figure.suptitle(textwrap.fill(title, int(wide * 12)), x=0.01, ha="left")
    if listed:
        tokens = maps.tokens[stack]
        lines = [f"columns, looked at: {' '.join(tokens.keys)}"]
        if tokens.queries == tokens.keys:
            lines = [f"rows look, columns are looked at: {' '.join(tokens.keys)}"]
        else:
            lines.insert(0, f"rows, looking: {' '.join(tokens.queries)}")
        text = "\n".join(textwrap.fill(line, int(wide * 16)) for line in lines)
        figure.supxlabel(text, x=0.01, ha="left", fontsize=7)
