"""Figures as PNG and SVG: made without a display or global state, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount.base.errors import UsageError, need_extra
from headcount.base.files import whole
from headcount.base.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def check_figures(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse other endings than PNG and SVG, and say early when matplotlib is not there."""
    for path in paths:
        if Path(path).suffix.lower() not in SUFFIXES:
            raise UsageError(f"A figure ends in .png or .svg, not '{path}'.")
        need_matplotlib()


def need_matplotlib() -> Any:
    """matplotlib, or how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise need_extra("matplotlib", "report") from None
    return matplotlib


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    need_matplotlib()
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # labels beside maps of a fixed shape come out a little further than the layout reckons
    engine = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.06)
    return Figure(figsize=(width, height), layout=engine)


def scale_of(*squares: np.ndarray) -> dict[str, Any]:
    """Colours of correlations for `imshow`: two, white at 0, where some are below; else one."""
    low = min(float(np.nanmin(values)) for values in squares)
    if low < 0:
        return {"cmap": "RdBu_r", "vmin": -1.0, "vmax": 1.0}
    return {"cmap": "viridis", "vmin": 0.0, "vmax": 1.0}


def ink_on(image: Any, value: float) -> str:
    """Black or white, whichever can be read on the colour of a value."""
    red, green, blue, _ = image.cmap(image.norm(value))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def colour_bar(image: Any, axes: Any, label: str = "", *, size: float = 7) -> Any:
    """A scale to the right of `axes`, exactly as high as what is drawn there."""
    bar = axes.figure.colorbar(image, cax=axes.inset_axes((1.04, 0, 0.05, 1)))
    bar.set_label(label, fontsize=size)
    bar.ax.tick_params(length=2, labelsize=size)
    bar.outline.set_visible(False)
    return bar


def relative_axis(axes: Any, score: float) -> None:
    """A second scale on the right: the score as a share of the full model's, in per cent."""
    right = axes.secondary_yaxis(
        "right",
        functions=(
            lambda y: np.multiply(y, 100 / score),
            lambda r: np.multiply(r, score / 100),
        ),
    )
    right.set_ylabel("of the full model, %")


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write the figure as its ending says, whole or not at all."""
    path = Path(path)
    check_figures([path])
    matplotlib = need_matplotlib()
    about = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}
    with whole(path) as partial, matplotlib.rc_context(STYLE):
        _escape(figure)
        figure.savefig(partial, dpi=150, metadata=about)
    return path


def save_all(figure: Figure, paths: Iterable[str | os.PathLike[str]]) -> None:
    """Write the figure to each of these files; places are reckoned once, which takes longest."""
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

    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_text(printable(text.get_text(), lines=True))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            for formatter in (axis.get_major_formatter(), axis.get_minor_formatter()):
                if isinstance(formatter, FuncFormatter):  # what labels given by hand come to
                    formatter.func = _escaped(formatter.func)


def _escaped(label: Callable[..., str]) -> Callable[..., str]:
    return lambda *place: printable(str(label(*place)))
