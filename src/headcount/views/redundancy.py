"""How alike heads are, drawn: heat maps with layers marked, and what several of them say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headcount.likeness.compare import MatrixComparison, Pair
from headcount.likeness.layers import layers_of
from headcount.likeness.result import Redundancy
from headcount.views.figures import (
    COLOURS,
    colour_bar,
    colour_of,
    ink_on,
    new_figure,
    no_frame,
    scale_of,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    with styled():
        figure = new_figure(PANEL * columns + 0.3, (PANEL - 0.2) * rows + 0.5)
        figure.suptitle(title_of(value), x=0.01, ha="left")
        for number, (stack, name) in enumerate(panels):
            axes = figure.add_subplot(rows, columns, number + 1)
            title = f"{stack} · {in_full(name)}" if len(value.stacks) > 1 else in_full(name)
            _heat_map(axes, value[name, stack].values, layers_of(value.layout, stack))
            axes.set_title(title)
            axes.set_xlabel("layer")
            if number % columns == 0:
                axes.set_ylabel("layer")
    return figure


def in_full(name: str) -> str:
    """A distance's name for readers; the name of a plugin's distance stays as it is.

    >>> in_full("js"), in_full("mine")
    ('Jensen–Shannon (js)', 'mine')
    """
    return f"{FULL[name]} ({name})" if name in FULL else name


def title_of(value: Redundancy) -> str:
    """Which model, on what, and how many inputs."""
    model = Path(str(value.provenance.get("model", "model"))).name
    name = value.provenance.get("inputs")
    inputs = f"{value.count} inputs" + (f" ({name})" if name else "")
    return f"Distance between heads: {model} on {inputs}"


def _heat_map(axes: Axes, values: np.ndarray, layers: np.ndarray) -> None:
    image = axes.imshow(values, cmap="viridis", vmin=0, interpolation="nearest")
    bounds = np.flatnonzero(np.diff(layers)) + 0.5
    for bound in bounds:
        axes.axhline(bound, color="white", linewidth=0.5)
        axes.axvline(bound, color="white", linewidth=0.5)
    present = np.unique(layers)
    step = -(-len(present) // 12)
    middles = [float(np.flatnonzero(layers == layer).mean()) for layer in present]
    axes.set_xticks(middles[::step], present[::step])
    axes.set_yticks(middles[::step], present[::step])
    no_frame(axes)
    colour_bar(image, axes)


def comparison_figure(comparison: MatrixComparison) -> Figure:
    """Agreement of distances and of files, distance against layer gap, and clusters of layers."""
    files = comparison.files
    stacks = list(dict.fromkeys(layers.stack for layers in comparison.where))
    gaps = dict.fromkeys(layers.stack for layers in comparison.where if layers.gap)
    draws: list[Callable[[Axes], None]] = [
        partial(_agreement, title=title, names=names, r=r)
        for title, names, r in _squares(comparison.between_distances, stacks, files)
    ]
    draws += [partial(_layer_gap, comparison=comparison, stack=stack) for stack in gaps]
    draws += [partial(_layer_clusters, comparison=comparison, stack=stack) for stack in stacks]
    if len(files) == 2:
        draws.append(partial(_two_files, comparison=comparison))
    else:
        draws += [
            partial(_agreement, title=title, names=names, r=r)
            for title, names, r in _squares(comparison.between_files, stacks, None)
        ]
    columns = 2 if len(draws) == 4 else min(3, len(draws))
    rows = -(-len(draws) // columns)
    with styled():
        figure = new_figure(5.2 * columns, 4.0 * rows)
        for number, draw in enumerate(draws, 1):
            draw(figure.add_subplot(rows, columns, number))
    return figure


def _squares(
    pairs: Sequence[Pair], stacks: Sequence[str], files: Sequence[str] | None
) -> list[tuple[str, list[str], np.ndarray]]:
    """(title, names, Pearson's r) for each square; between distances it is the mean over files."""
    squares = []
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair.stack, "" if files else pair.within), []).append(pair)
    for (stack, within), group in groups.items():
        names = list(dict.fromkeys(name for pair in group for name in (pair.one, pair.other)))
        sums = np.zeros((2, len(names), len(names)))
        for pair in group:
            i, j = names.index(pair.one), names.index(pair.other)
            sums[:, i, j] += pair.agreement.pearson, 1
        r = (sums[0] + sums[0].T) / np.maximum(sums[1] + sums[1].T, 1)
        np.fill_diagonal(r, 1)
        prefix = f"{stack}: " if len(stacks) > 1 else ""
        mean = f", mean of {len(files)} files" if files and len(files) > 1 else ""
        kind = f"between distances{mean}" if files else f"between files, {in_full(within)}"
        squares.append((f"{prefix}Pearson's r {kind}", names, r))
    return squares


def _agreement(axes: Axes, title: str, names: list[str], r: np.ndarray) -> None:
    image = axes.imshow(r, **scale_of(r))
    for (i, j), value in np.ndenumerate(r) if len(names) <= 12 else ():
        if i != j:
            text = f"{round(value, 2) + 0.0:.2f}".replace("0.", ".", 1)
            ink = ink_on(image, value)
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color=ink)
    rotated = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    long = max(map(len, names)) > 5
    axes.set_xticks(range(len(names)), names, **(rotated if long else {}))
    axes.set_yticks(range(len(names)), [in_full(name) for name in names])
    no_frame(axes)
    axes.set_title(title)


def _two_files(axes: Axes, comparison: MatrixComparison) -> None:
    """Pearson's r of two files with its interval, for every distance."""
    pairs = comparison.between_files
    several = len({pair.stack for pair in pairs}) > 1
    for row, agreement in enumerate(pair.agreement for pair in pairs):
        ends = [agreement.low, agreement.high]
        axes.plot(ends, [row, row], color=COLOURS[0], lw=2, alpha=0.5)
        axes.plot(agreement.pearson, row, "o", color=COLOURS[0], markersize=5)
    names = [f"{pair.stack} " * several + in_full(pair.within) for pair in pairs]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    lowest = min((pair.agreement.low for pair in pairs), default=0.0)
    axes.set_xlim(min(0.9, np.floor(10 * lowest) / 10), 1.005)
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_xlabel("Pearson's r, 95 % interval")
    axes.set_title(f"{comparison.files[0]} against {comparison.files[1]}")


def _layer_gap(axes: Axes, comparison: MatrixComparison, stack: str) -> None:
    """A line for each file and distance; a distance has one colour, the first files one stroke."""
    from matplotlib.ticker import MaxNLocator

    colours: dict[str, str] = {}
    strokes = dict(zip(comparison.files, STROKES, strict=False))
    for layers in comparison.where:
        if layers.stack != stack or layers.gap is None:
            continue
        label = None if layers.distance in colours else in_full(layers.distance)
        colour = colours.setdefault(layers.distance, colour_of(len(colours)))
        line = {"color": colour, "ls": strokes.get(layers.file, "-"), "lw": 1.2, "marker": "."}
        axes.plot(layers.gap.gaps, layers.gap.means, label=label, **line)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("layers between two heads")
    axes.set_ylabel("mean distance")
    axes.set_title(f"distance against layer gap, {stack}")
    if 1 < len(comparison.files) <= len(STROKES):
        for file, stroke in strokes.items():
            axes.plot([], [], color="grey", linestyle=stroke, linewidth=1.2, label=file)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, ncols=2, fontsize=7, loc="lower left")


def _layer_clusters(axes: Axes, comparison: MatrixComparison, stack: str) -> None:
    """A row for each matrix, a cell for each layer; a cluster has one colour in its row."""
    from matplotlib.colors import ListedColormap

    matrices = [layers for layers in comparison.where if layers.stack == stack]
    labels = np.array([layers.clusters.labels for layers in matrices])
    colours = ListedColormap(list(COLOURS))
    axes.imshow(labels, cmap=colours, vmin=0, vmax=len(COLOURS) - 1, aspect="auto", alpha=0.85)
    axes.set_xticks(np.arange(labels.shape[1]), labels=list(map(str, range(labels.shape[1]))))
    many = len(comparison.files) > 1
    rows = [f"{m.file} {m.distance}" if many else in_full(m.distance) for m in matrices]
    step = -(-len(rows) // 24)
    axes.set_yticks(range(0, len(rows), step), rows[::step], fontsize=7)
    for edge in range(1, labels.shape[1]):
        axes.axvline(edge - 0.5, color="white", lw=1)
    for edge in range(1, len(rows)):
        axes.axhline(edge - 0.5, color="white", lw=1)
    no_frame(axes)
    axes.set_xlabel("layer")
    axes.set_title(f"clusters of layers, {stack}")
