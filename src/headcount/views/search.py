"""A search, drawn: score against heads kept, the bound, and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.views.curves import draw_full
from headcount.views.figures import COLOURS, STYLE, need_matplotlib, new_figure, save_both

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def search_figure(data: Mapping[str, Any]) -> Figure:
    """Every cut, as far above or below the line of all heads as it is on the rows it was scored on.

    Cuts are judged on some of the rows that choose, and the answer (the star, beside random cuts of
    its size) on others: their scores as such would tell rows apart, not cuts. The intervals are
    those of the differences; the largest loss that is allowed is the dotted line.
    """
    matplotlib = need_matplotlib()
    from matplotlib.ticker import MaxNLocator

    with matplotlib.rc_context(STYLE):
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        full = data["chose"]
        draw_full(axes, full)
        if data.get("least") is not None:
            axes.axhline(data["least"], color="#b03030", lw=1, ls=":", label=f"{data['bound']} less"
                         if data["higher_is_better"] else f"{data['bound']} more")  # fmt: skip
        methods = list(dict.fromkeys(one["method"] for one in data["tried"]))
        for place, method in enumerate(methods):
            own = [one for one in data["tried"] if one["method"] == method]
            _draw_cuts(axes, full["score"], own, method, COLOURS[place % len(COLOURS)])
        if data["score"] is not None:
            _draw_answer(axes, data)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(f"heads kept, of {data['heads']}")
        axes.set_ylabel(data["metric"])
        axes.set_title(f"{Path(str(data['model'])).name} on {data['task']}")
        axes.grid(axis="y", color="#e5e5e5", lw=0.6)
        axes.legend(frameon=False, fontsize=7, loc="lower right")
    return figure


def _draw_cuts(
    axes: Any, level: float, own: Sequence[Mapping[str, Any]], method: str, colour: str
) -> None:
    kept = [one["kept"] for one in own]
    lost = [one["difference"] for one in own]
    heights = [level + each["value"] for each in lost]
    ends = [[_reach(each, end) for each in lost] for end in ("low", "high")]
    label = f"{method}, on rows that choose"
    axes.errorbar(kept, heights, yerr=ends, fmt="o", ms=4, lw=0.8, color=colour, label=label)


def _draw_answer(axes: Any, data: Mapping[str, Any]) -> None:
    level, lost = data["chose"]["score"], data["difference"]
    ends = [[_reach(lost, end)] for end in ("low", "high")]
    axes.errorbar([data["kept"]], [level + lost["value"]], yerr=ends, fmt="*", ms=12, lw=1.2,
                  color="#b03030", label="the answer, on other rows")  # fmt: skip
    if data["random"]:
        drawn = [level + score - data["full"] for score in data["random"]["scores"]]
        axes.plot([data["kept"]] * len(drawn), drawn, "x", color="#777777", label="random heads")


def _reach(lost: Mapping[str, Any], end: str) -> float:
    """How far an end of the interval is off; without one, not at all."""
    return 0.0 if lost[end] is None else abs(lost[end] - lost["value"])


def save_figure(data: Mapping[str, Any], out: Path) -> None:
    """search.png and search.svg in the folder of the search."""
    if data["tried"]:
        save_both(search_figure(data), out / "search")
