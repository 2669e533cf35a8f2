"""How alike heads are, drawn: heat maps with layers marked, and what several of them say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.likeness.compare import MatrixComparison, Pair
from headcount.likeness.layers import layers_of
from headcount.likeness.result import Redundancy
from headcount.views.figures import (
    COLOURS,
    STYLE,
    colour_bar,
    ink_on,
    need_matplotlib,
    new_figure,
    scale_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAP = "viridis"
PANEL = 3.1
"""Inches of one square panel."""
FULL = {
    "cos": "cosine",
    "corr": "correlation",
    "js": "Jensen–Shannon",
    "bc": "Bhattacharyya",
    "dcor": "distance correlation",
    "pc": "Procrustes",
    "cc": "canonical correlation",
}
"""The distances' names, written out."""
STROKES = ("-", "--", ":", "-.")


def heat_maps(value: Redundancy, distances: Sequence[str] | None = None) -> Figure:
    """One heat map for each stack and distance; lines between layers, their numbers on the axes."""
    names = list(distances or value.distances)
    panels = [(stack, name) for stack in value.stacks for name in names]
    # several stacks: a row for each where they fit
    columns = min(4, len(names)) if len(value.stacks) > 1 else min(4, len(panels))
    rows = -(-len(panels) // columns)
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(PANEL * columns + 0.3, (PANEL - 0.2) * rows + 0.5)
        figure.suptitle(title_of(value), x=0.01, ha="left")
        for place, (stack, name) in enumerate(panels):
            axes = figure.add_subplot(rows, columns, place + 1)
            title = f"{stack} · {in_full(name)}" if len(value.stacks) > 1 else in_full(name)
            _heat_map(axes, value[name, stack].values, layers_of(value.layout, stack))
            axes.set_title(title)
            axes.set_xlabel("layer")
            if place % columns == 0:
                axes.set_ylabel("layer")
    return figure


def in_full(name: str) -> str:
    """A distance's name for readers; one of a user's own stays as it is.

    >>> in_full("js"), in_full("mine")
    ('Jensen–Shannon (js)', 'mine')
    """
    return f"{FULL[name]} ({name})" if name in FULL else name


def title_of(value: Redundancy) -> str:
    """Which model, on what, and how many inputs."""
    model = Path(str(value.made.get("model", "model"))).name
    name = value.made.get("inputs")
    inputs = f"{value.count} inputs" + (f" ({name})" if name else "")
    return f"Distance between heads: {model} on {inputs}"


def _heat_map(axes: Any, values: np.ndarray, layers: np.ndarray) -> None:
    image = axes.imshow(values, cmap=MAP, vmin=0, interpolation="nearest")
    bounds = np.flatnonzero(np.diff(layers)) + 0.5
    for bound in bounds:
        axes.axhline(bound, color="white", linewidth=0.5)
        axes.axvline(bound, color="white", linewidth=0.5)
    present = np.unique(layers)
    step = -(-len(present) // 12)
    middles = [float(np.flatnonzero(layers == layer).mean()) for layer in present]
    axes.set_xticks(middles[::step], present[::step])
    axes.set_yticks(middles[::step], present[::step])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    colour_bar(image, axes)


def comparison_figure(found: MatrixComparison) -> Figure:
    """Agreement of distances and of files, distance against layer gap, and clusters of layers."""
    stacks = list(dict.fromkeys(each.stack for each in found.where))
    panels: list[tuple[Any, ...]] = [
        (_agreement, *each) for each in _squares(found.between_distances, stacks, found.files)
    ]
    gaps = [stack for stack in stacks if any(w.gap for w in found.where if w.stack == stack)]
    panels += [(_layer_gap, found, stack) for stack in gaps]
    panels += [(_layer_clusters, found, stack) for stack in stacks]
    if len(found.files) == 2:
        panels.append((_two_files, found))
    else:
        panels += [(_agreement, *each) for each in _squares(found.between_files, stacks, None)]
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = -(-len(panels) // columns)
    with need_matplotlib().rc_context(STYLE):
        figure = new_figure(5.2 * columns, 4.0 * rows)
        for place, (draw, *what) in enumerate(panels):
            draw(figure.add_subplot(rows, columns, place + 1), *what)
    return figure


def _squares(
    pairs: Sequence[Pair], stacks: Sequence[str], files: Sequence[str] | None
) -> list[tuple[str, list[str], np.ndarray]]:
    """(title, names, Pearson's r) for each square; between distances it is the mean over files."""
    squares = []
    groups = dict.fromkeys((each.stack, "" if files else each.within) for each in pairs)
    for stack, within in groups:
        own = [p for p in pairs if p.stack == stack and (files or p.within == within)]
        names = list(dict.fromkeys(name for pair in own for name in (pair.one, pair.other)))
        sums = np.zeros((2, len(names), len(names)))
        for pair in own:
            i, j = names.index(pair.one), names.index(pair.other)
            sums[:, i, j] += pair.agreement.pearson, 1
        r = (sums[0] + sums[0].T) / np.maximum(sums[1] + sums[1].T, 1)
        np.fill_diagonal(r, 1)
        prefix = f"{stack}: " if len(stacks) > 1 else ""
        many = files is not None and len(files) > 1
        mean = f", mean of {len(files)} files" if files is not None and many else ""
        what = f"between distances{mean}" if files else f"between files, {in_full(within)}"
        title = f"{prefix}Pearson's r {what}"
        squares.append((title, names, r))
    return squares


def _agreement(axes: Any, title: str, names: list[str], r: np.ndarray) -> None:
    image = axes.imshow(r, **scale_of(r))
    for i in range(len(names)):
        for j in range(len(names)):
            if i != j and len(names) <= 12:
                text = f"{round(r[i, j], 2) + 0.0:.2f}".replace("0.", ".", 1)
                colour = ink_on(image, r[i, j])
                axes.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    long = max(map(len, names)) > 5
    axes.set_xticks(range(len(names)), names, **(turned if long else {}))
    axes.set_yticks(range(len(names)), [in_full(name) for name in names])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title(title)


def _two_files(axes: Any, found: MatrixComparison) -> None:
    """Pearson's r of two files with its interval, for every distance."""
    several = len({pair.stack for pair in found.between_files}) > 1
    for place, pair in enumerate(found.between_files):
        each = pair.agreement
        axes.plot([each.low, each.high], [place, place], color=COLOURS[0], lw=2, alpha=0.5)
        axes.plot(each.pearson, place, "o", color=COLOURS[0], markersize=5)
    names = [
        f"{pair.stack} {in_full(pair.within)}" if several else in_full(pair.within)
        for pair in found.between_files
    ]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    lowest = min((pair.agreement.low for pair in found.between_files), default=0.0)
    axes.set_xlim(min(0.9, np.floor(10 * lowest) / 10), 1.005)
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_xlabel("Pearson's r, 95 % interval")
    axes.set_title(f"{found.files[0]} against {found.files[1]}")


def _layer_gap(axes: Any, found: MatrixComparison, stack: str) -> None:
    """A line for each file and distance; a distance has one colour, the first files one stroke."""
    colours: dict[str, str] = {}
    strokes = dict(zip(found.files, STROKES, strict=False))
    for each in found.where:
        if each.stack != stack or each.gap is None:
            continue
        first = each.distance not in colours
        colour = colours.setdefault(each.distance, COLOURS[len(colours) % len(COLOURS)])
        label = in_full(each.distance) if first else None
        line = axes.plot(each.gap.gaps, each.gap.means, color=colour, label=label, marker=".")
        line[0].set(linestyle=strokes.get(each.file, "-"), linewidth=1.2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("layers between two heads")
    axes.set_ylabel("mean distance")
    axes.set_title(f"distance against layer gap, {stack}")
    if 1 < len(found.files) <= len(STROKES):
        for file, stroke in strokes.items():
            axes.plot([], [], color="grey", linestyle=stroke, linewidth=1.2, label=file)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, ncols=2, fontsize=7, loc="lower left")


def _layer_clusters(axes: Any, found: MatrixComparison, stack: str) -> None:
    """A row for each matrix, a cell for each layer; a cluster has one colour in its row."""
    own = [each for each in found.where if each.stack == stack]
    labels = np.array([each.clusters.labels for each in own])
    from matplotlib.colors import ListedColormap

    cut = ListedColormap(list(COLOURS))
    axes.imshow(labels, cmap=cut, vmin=0, vmax=len(COLOURS) - 1, aspect="auto", alpha=0.85)
    axes.set_xticks(np.arange(labels.shape[1]), labels=np.arange(labels.shape[1]))
    many = len(found.files) > 1
    rows = [f"{each.file} {each.distance}" if many else in_full(each.distance) for each in own]
    step = -(-len(rows) // 24)
    axes.set_yticks(range(0, len(rows), step), rows[::step], fontsize=7)
    for edge in range(1, labels.shape[1]):
        axes.axvline(edge - 0.5, color="white", lw=1)
    for edge in range(1, len(rows)):
        axes.axhline(edge - 0.5, color="white", lw=1)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_xlabel("layer")
    axes.set_title(f"clusters of layers, {stack}")
