"""Figures as PNG and SVG: made without a display or global state, written whole or not at all.

And what several figures share: colours, lines with a band, heads as a grid, a second scale.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.base.errors import UsageError, need_extra
from headcount.base.files import whole
from headcount.base.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from headcount.heads import Layout

Row = Mapping[str, Any]
"""A row of a study's summary, or a score with its interval, as its JSON has it."""
SUFFIXES = (".png", ".svg")
STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "figure.titlesize": 11,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "headcount",  # the same figure is the same file
    "text.parse_math": False,  # a $ in a name is no mathematics
}
COLOURS = ("#3b6fb6", "#d1662f", "#3a9a6e", "#a23b72", "#8a6f2e", "#5f5aa2", "#4f4f4f")
GRID = "#e5e5e5"
BAND = 0.18
"""Opacity of a band."""


def colour_of(number: int) -> str:
    """The colour of the line or group with this number."""
    return COLOURS[number % len(COLOURS)]


def check_figures(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse other endings than PNG and SVG, and say early when matplotlib is not there."""
    for path in paths:
        if Path(path).suffix.lower() not in SUFFIXES:
            raise UsageError(f"A figure ends in .png or .svg, not '{path}'.")
        need_matplotlib()


def need_matplotlib() -> ModuleType:
    """matplotlib, or how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise need_extra("matplotlib", "report") from None
    return matplotlib


def styled() -> AbstractContextManager[None]:
    """What is drawn inside has the style of all figures; matplotlib's settings stay as they are."""
    return need_matplotlib().rc_context(STYLE)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # labels beside maps of a fixed shape come out a little further than the layout computes
    engine = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.06)
    return Figure(figsize=(width, height), layout=engine)


def draw_band(
    axes: Axes,
    x: Sequence[float],
    mean: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    colour: str,
    label: str | None = None,
) -> None:
    """A line of means in the band from `low` to `high`; a single point has a stroke instead."""
    if len(x) > 1:
        axes.fill_between(x, low, high, color=colour, alpha=BAND, lw=0)
    else:
        axes.vlines(x, low, high, color=colour, alpha=0.5, lw=1.6)
    axes.plot(x, mean, ".-", color=colour, lw=1.4, label=label)


def explain_band(axes: Axes) -> None:
    """A line of the legend that says what the bands are."""
    axes.fill_between([], [], color="#3b3b3b", alpha=BAND, lw=0, label="band: worst to best")


def draw_full(axes: Axes, full: Row) -> None:
    """The score of the model with all heads: a dashed line in the grey band of its interval."""
    axes.axhline(full["score"], color="#555555", lw=1, ls="--", label="all heads")
    if full["low"] is not None:
        band = {"color": "#999999", "alpha": 0.15, "lw": 0, "label": "its 95 % interval"}
        axes.axhspan(full["low"], full["high"], **band)


def relative_axis(axes: Axes, score: float) -> None:
    """A second scale on the right: the score as a share of the full model's, in per cent."""
    right = axes.secondary_yaxis(
        "right",
        functions=(lambda y: np.multiply(y, 100 / score), lambda r: np.multiply(r, score / 100)),
    )
    right.set_ylabel("of the full model, %")


def head_grid(layout: Layout, values: Iterable[float], stack: str) -> np.ndarray:
    """(layer, head) of one stack, by the numbers heads had before any were removed.

    Blank (NaN) where there is no head.
    """
    originals = [layout.original(head) for head in layout]
    widest = max((head.index + 1 for head in originals if head.stack == stack), default=1)
    grid = np.full((len(layout[stack].heads), widest), np.nan)
    for head, value in zip(originals, values, strict=True):
        if head.stack == stack:
            grid[head.layer, head.index] = value
    return grid


def whole_ticks(axes: Axes, size: float = 8) -> None:
    """Layers and heads are whole numbers; no tick marks."""
    from matplotlib.ticker import MaxNLocator

    axes.tick_params(length=0, labelsize=size)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))


def no_frame(axes: Axes) -> None:
    """Neither tick marks nor a frame."""
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def scale_of(*squares: np.ndarray) -> dict[str, Any]:
    """Colours of correlations for `imshow`: two, white at 0, where some are below; else one."""
    low = min(float(np.nanmin(values)) for values in squares)
    if low < 0:
        return {"cmap": "RdBu_r", "vmin": -1.0, "vmax": 1.0}
    return {"cmap": "viridis", "vmin": 0.0, "vmax": 1.0}


def ink_on(image: AxesImage, value: float) -> str:
    """Black or white, whichever can be read on the colour of a value."""
    red, green, blue, _ = image.to_rgba(np.array([value]))[0]
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def colour_bar(image: AxesImage, axes: Axes, label: str = "", *, size: float = 7) -> Colorbar:
    """A scale to the right of `axes`, exactly as high as what is drawn there."""
    bar = axes.figure.colorbar(image, cax=axes.inset_axes((1.04, 0, 0.05, 1)))
    bar.set_label(label, fontsize=size)
    bar.ax.tick_params(length=2, labelsize=size)
    bar.outline.set_visible(False)
    return bar


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write the figure as its ending says, whole or not at all."""
    path = Path(path)
    check_figures([path])
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}
    with whole(path) as partial, styled():
        _escape(figure)
        figure.savefig(partial, dpi=150, metadata=metadata)
    return path


def save_all(figure: Figure, paths: Iterable[str | os.PathLike[str]]) -> None:
    """Write the figure to each of these files; the layout is computed once, which takes longest."""
    engine = figure.get_layout_engine()
    try:
        for path in paths:
            save_figure(figure, path)
            figure.set_layout_engine(None)
    finally:
        figure.set_layout_engine(engine)


def save_both(figure: Figure, path: Path) -> None:
    """Write the figure as PNG and as SVG; `path` has no ending."""
    save_all(figure, [path.with_name(path.name + ending) for ending in SUFFIXES])


def _escape(figure: Figure) -> None:
    """Write out control characters in every text, names and tokens among them: XML forbids them."""
    from matplotlib.text import Text
    from matplotlib.ticker import FuncFormatter

    def escaped(label: Callable[..., str]) -> Callable[..., str]:
        return lambda *position: printable(str(label(*position)))

    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_text(printable(text.get_text(), lines=True))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            for formatter in (axis.get_major_formatter(), axis.get_minor_formatter()):
                if isinstance(formatter, FuncFormatter):  # what labels given by hand come to
                    formatter.func = escaped(formatter.func)
