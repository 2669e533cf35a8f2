"""Attention maps drawn: all heads small, or a few large with their tokens; or over a picture.

As in AutoAttention, Figs 3 and 4.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.views.figures import colour_bar, new_figure, no_frame, save_both, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from headcount.changes.maps import AttentionMaps, HeadUse, Map, Picture, Tokens

MAP = "viridis"
REMOVED: dict[str, Any] = {
    "facecolor": "#ececec",
    "edgecolor": "#c4c4c4",
    "hatch": "////",
    "linewidth": 0,
}
TICKS = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 1)
FEW = (0, 0.25, 1)
"""Ticks of the scale, and of one that is small."""
CELL, SIDE = 0.5, 0.92
"""Inches from one small map to the next, and the share of it that a map fills."""


def save_figures(maps: AttentionMaps, folder: Path, names: Sequence[str], large: bool) -> None:
    """A figure for each stack; `names` are the models'."""
    for stack in maps.tokens:
        figure = (closeup if large else overview)(maps, stack, names)
        save_both(figure, folder / ("attention" if len(maps.tokens) == 1 else f"attention-{stack}"))


def overview(maps: AttentionMaps, stack: str, names: Sequence[str]) -> Figure:
    """Layers × heads of one stack; with two models a layer has two rows, the second below.

    A head that was removed is hatched, at the position it had. `names` are the models'.
    """
    runs = [run for run in maps.before if run.head.stack == stack]
    rows = list(dict.fromkeys((run.head.layer, run.run) for run in runs))
    columns = sorted({run.head.index for run in runs})
    two = maps.after is not None
    step = 2.2 if two else 1.0
    width, height = len(columns) * CELL, len(rows) * step * CELL
    with styled():
        figure = new_figure(1.05 * max(width, 3.6) + (2.0 if two else 1.7), height + 1.5)
        axes = figure.add_subplot()
        image = None
        for run in runs:
            x = columns.index(run.head.index)
            y = step * rows.index((run.head.layer, run.run))
            image = _small(axes, maps.before[run], x, y, maps.picture)
            if maps.after is not None:
                image = _small(axes, maps.after.get(run), x, y + 1, maps.picture) or image
        axes.set(xlim=(-0.05, len(columns)), ylim=(len(rows) * step, -0.05), aspect="equal")
        half = SIDE / 2
        axes.set_xticks([x + half for x in range(len(columns))], [str(x) for x in columns])
        many = any(run for _, run in rows)
        labels = [f"{layer}, run {run}" if many else str(layer) for layer, run in rows]
        middles = [step * row + half for row in range(len(rows))]
        if two:
            axes.set_yticks([y + 1 for y in middles], ["after"] * len(rows), minor=True)
            axes.tick_params(axis="y", which="minor", length=0, labelsize=6, labelcolor="#777777")
        axes.set_yticks(middles, labels)
        axes.set(xlabel="head", ylabel="layer")
        no_frame(axes)
        _scale(image, axes, FEW if height < 1.6 else TICKS)
        _entitle(figure, maps, stack, names)
    return figure


def closeup(maps: AttentionMaps, stack: str, names: Sequence[str]) -> Figure:
    """The heads of one stack that `maps` has, large, their tokens on the axes.

    With two models the second is drawn below the first; of a single head, to its right.
    """
    runs = [run for run in maps.before if run.head.stack == stack]
    tokens = maps.tokens[stack]
    longest = max(len(tokens.queries), len(tokens.keys))
    if maps.picture is not None:
        longest = 24  # what it is attended over has no names
    two = maps.after is not None
    side = min(6.0, max(2.2, (0.16 if len(runs) <= 2 else 0.11) * longest))
    size = min(8.0, 72 * 0.8 * side / max(longest, 1))
    columns = 2 if two and len(runs) == 1 else min(len(runs), 4)
    below = 2 if two and len(runs) > 1 else 1
    lines = below * -(-len(runs) // columns)
    with styled():
        figure = new_figure(max(columns * (side + 0.2), 3.6) + 1.8, lines * (side + 0.5) + 1.6)
        grid = figure.subplots(lines, columns, squeeze=False)
        used, image = [], None
        for number, run in enumerate(runs):
            row, column = below * (number // columns), number % columns
            image = _large(
                grid[row, column], maps.before[run], _name(run, "before" * two), maps.picture
            )
            used.append(grid[row, column])
            if maps.after is not None:
                beside = grid[row + 1, column] if below == 2 else grid[0, 1]
                after = maps.after.get(run)
                which = "removed" if after is None else "after"
                _large(beside, after, _name(run, which), maps.picture)
                used.append(beside)
        for line in grid:
            drawn = [axes for axes in line if axes.images]
            for axes in line:
                _spell(axes, tokens, size, with_queries=axes in drawn[:1])
                no_frame(axes)
                axes.set_visible(axes in used)
        _scale(image, [axes for axes in grid[0] if axes in used][-1])
        _entitle(figure, maps, stack, names, listed=False)
    return figure


def _norm() -> PowerNorm:
    from matplotlib.colors import PowerNorm

    return PowerNorm(0.5, vmin=0, vmax=1)  # or all but the sharpest heads would look empty


def _small(
    axes: Axes, attention: Map | None, x: float, y: float, picture: Picture | None
) -> AxesImage | None:
    if attention is None:
        from matplotlib.patches import Rectangle

        axes.add_patch(Rectangle((x, y), SIDE, SIDE, **REMOVED))
        return None
    return _drawn(axes, attention, picture, extent=(x, x + SIDE, y + SIDE, y))


def _drawn(axes: Axes, attention: Map, picture: Picture | None, **settings: Any) -> AxesImage:
    """A map of tokens, or what is attended to over a picture."""
    if picture is None:
        return axes.imshow(attention, MAP, norm=_norm(), interpolation="nearest", **settings)
    rows, columns, _ = picture.grid
    settings = {"extent": (-0.5, columns - 0.5, rows - 0.5, -0.5)} | settings
    axes.imshow(picture.pixels, **settings)
    return axes.imshow(
        picture.over(attention), MAP, norm=_norm(), alpha=0.6, interpolation="nearest", **settings
    )


def _large(
    axes: Axes, attention: Map | None, title: str, picture: Picture | None
) -> AxesImage | None:
    axes.set_title(title)
    if attention is None:
        from matplotlib.patches import Rectangle

        axes.add_patch(Rectangle((0, 0), 1, 1, transform=axes.transAxes, **REMOVED))
        axes.set(box_aspect=1)
        return None
    return _drawn(axes, attention, picture, aspect="auto")


def _name(run: HeadUse, which: str) -> str:
    text = f"layer {run.head.layer}, head {run.head.index}"
    text += f", run {run.run}" if run.run else ""
    return f"{text}: {which}" if which else text


def _spell(axes: Axes, tokens: Tokens, size: float, *, with_queries: bool) -> None:
    """Tokens on the axes of a large map, where it has as many rows and columns as tokens."""
    if len(axes.images) != 1:  # nothing, or a picture with what is over it
        axes.set(xticks=[], yticks=[], box_aspect=1)
        return
    axes.set_box_aspect(1)
    queries, keys = axes.images[0].get_size()
    if (queries, keys) == (len(tokens.queries), len(tokens.keys)):
        axes.set_xticks(range(keys), tokens.keys, rotation=90, fontsize=size)
        names = tokens.queries if with_queries else [""] * queries
        axes.set_yticks(range(queries), names, fontsize=size)


def _scale(image: AxesImage | None, axes: Axes, ticks: Sequence[float] = TICKS) -> None:
    """The scale, to the right of a map."""
    if image is not None:
        bar = colour_bar(image, axes, "attention\n(square-root scale)", size=8)
        bar.set_ticks(list(ticks), labels=[f"{tick:g}" for tick in ticks])


def _entitle(
    figure: Figure, maps: AttentionMaps, stack: str, names: Sequence[str], *, listed: bool = True
) -> None:
    """Which models and stack above, the tokens below."""
    width = figure.get_figwidth()
    title = f"{stack.capitalize()} attention: {names[0]}"
    if maps.after is not None and maps.mask is not None:
        heads = [head for head in maps.layout if head.stack == stack]
        kept = sum(head in maps.mask for head in heads)
        title += f", and pruned: {names[1]} ({kept} of {len(heads)} heads)"
    figure.suptitle(textwrap.fill(title, int(width * 12)), x=0.01, ha="left")
    if maps.picture is not None:
        who = "the class token attends" if maps.picture.grid.start else "all patches attend"
        text = f"What {who} to, over {maps.text}."
        figure.supxlabel(textwrap.fill(text, int(width * 16)), x=0.01, ha="left", fontsize=7)
    elif listed:
        tokens = maps.tokens[stack]
        lines = [f"rows, queries: {' '.join(tokens.queries)}"]
        lines += [f"columns, keys: {' '.join(tokens.keys)}"]
        if tokens.queries == tokens.keys:
            lines = [f"rows are queries, columns keys: {' '.join(tokens.keys)}"]
        text = "\n".join(textwrap.fill(line, int(width * 16)) for line in lines)
        figure.supxlabel(text, x=0.01, ha="left", fontsize=7)
