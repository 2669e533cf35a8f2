from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from behaviour.test_result import roles
from headcount.heads import Layout, Stack
from headcount.views.figures import save_figure
from headcount.views.roles import heat_maps


def test_a_map_for_each_quantity_that_was_measured(tmp_path: Path) -> None:
    layout = Layout((Stack("encoder", (2, 2), (2, 2), (1, 1), ((1, 3), (0, 1))),))
    found = roles(layout, previous=[0.9, 0.2, 0.3, math.nan], next=[math.nan] * 4)
    figure = heat_maps(found)
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]
    assert titles == ["previous", "same", "first", "separator", "duplicate", "induction"]
    drawn = np.ma.filled(figure.axes[0].images[0].get_array(), np.nan)
    np.testing.assert_array_equal(drawn, [[np.nan, 0.9, np.nan, 0.2], [0.3, *[np.nan] * 3]])
    path = save_figure(figure, tmp_path / "roles.svg")
    assert "What heads do: model on 100 inputs (made up)" in path.read_text(encoding="utf-8")
