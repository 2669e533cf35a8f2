from __future__ import annotations

import numpy as np
import pytest

from headcount.heads import Layout
from headcount.likeness.compare import compare
from headcount.likeness.layers import layers_of
from headcount.likeness.result import Measurement, Redundancy
from headcount.views.figures import save_figure
from headcount.views.redundancy import comparison_figure, heat_maps, in_full

ONE = Layout.of(encoder=[3, 0, 2, 4])
SEVERAL = Layout.of(encoder=[3] * 3, cross=[2] * 3, decoder=[2] * 2)
SEVEN = ("cos", "corr", "js", "bc", "dcor", "pc", "cc")


def value(seed=0, names=SEVEN, layout=ONE):
    rng = np.random.default_rng(seed)
    measured = {}
    for stack in layout.stacks:
        for name in names:
            values = rng.random((stack.total, stack.total))
            values = (values + values.T) / 2
            np.fill_diagonal(values, 0)
            measured[stack.name, name] = Measurement(values, values / 9)
    made = {"model": "folder/small-bert", "inputs": "cola"}
    return Redundancy(layout=layout, measured=measured, count=7, provenance=made)


def maps(figure):
    return [axes for axes in figure.axes if axes.images]


def test_a_heat_map_for_every_distance_with_layers_marked(tmp_path):
    found = value()
    figure = heat_maps(found)
    panels = maps(figure)
    assert [axes.get_title(loc="left") for axes in panels] == [in_full(name) for name in SEVEN]
    assert panels[2].get_title(loc="left") == "Jensen–Shannon (js)"
    assert np.array_equal(panels[2].images[0].get_array(), found["js"].values)
    assert [text.get_text() for text in panels[0].get_xticklabels()] == ["0", "2", "3"]
    assert panels[0].get_xticks().tolist() == [1.0, 3.5, 6.5]
    lines = sorted({float(line.get_xdata()[0]) for line in panels[0].lines} - {0.0})
    assert [bound for bound in lines if bound % 1] == [2.5, 4.5]
    assert figure.get_suptitle() == "Distance between heads: small-bert on 7 inputs (cola)"
    text = save_figure(figure, tmp_path / "a.svg").read_text()
    assert all(name in text for name in (*SEVEN, "layer", "small-bert"))


def test_several_stacks_have_their_own_maps():
    figure = heat_maps(value(names=("js", "cc"), layout=SEVERAL))
    titles = [axes.get_title(loc="left") for axes in maps(figure)]
    assert titles[:3] == [
        "encoder · Jensen–Shannon (js)",
        "encoder · canonical correlation (cc)",
        "cross · Jensen–Shannon (js)",
    ]
    assert len(maps(heat_maps(value(layout=SEVERAL), ["js"]))) == 3


def test_many_layers_are_not_all_numbered():
    layout = Layout.of(encoder=[2] * 30)
    axes = maps(heat_maps(value(names=["js"], layout=layout)))[0]
    assert [text.get_text() for text in axes.get_xticklabels()][:3] == ["0", "3", "6"]


@pytest.mark.parametrize(("files", "squares"), [(1, 1), (2, 1), (3, 8)])
def test_a_comparison_is_drawn(files, squares, tmp_path):
    values = {
        f"file{seed}": value(seed, layout=Layout.of(encoder=[3] * 4)) for seed in range(files)
    }
    found = compare(values, permutations=9)
    figure = comparison_figure(found)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert sum(title.startswith("Pearson's r") for title in titles) == squares
    assert "distance against layer gap, encoder" in titles
    assert "clusters of layers, encoder" in titles
    assert ("file0 against file1" in titles) == (files == 2)
    gap = figure.axes[titles.index("distance against layer gap, encoder")]
    assert len(gap.lines) == 7 * files + (files if files > 1 else 0), "and a key to the files"
    strokes = {line.get_linestyle() for line in gap.lines}
    assert len(strokes) == files
    assert gap.lines[0].get_ydata() == pytest.approx(found.where[0].gap.means)
    clusters = figure.axes[titles.index("clusters of layers, encoder")]
    shown = np.asarray(clusters.images[0].get_array())
    assert shown.tolist() == [list(each.clusters.labels) for each in found.where]
    save_figure(figure, tmp_path / "c.png")


def test_the_numbers_in_a_square_are_means_over_files():
    values = {f"file{seed}": value(seed, ["js", "cc"]) for seed in range(2)}
    found = compare(values, permutations=9)
    figure = comparison_figure(found)
    mean = np.mean([pair.agreement.pearson for pair in found.between_distances])
    square = maps(figure)[0].images[0].get_array()
    assert square[0, 1] == square[1, 0] == pytest.approx(mean)
    assert square[0, 0] == 1


def test_one_distance_and_two_layers_leave_little_to_draw():
    layout = Layout.of(encoder=[3, 3])
    found = compare({"a": value(0, ["js"], layout)}, permutations=9)
    assert [axes.get_title(loc="left") for axes in comparison_figure(found).axes] == [
        "clusters of layers, encoder"
    ]
    assert layers_of(layout, "encoder").tolist() == [0, 0, 0, 1, 1, 1]
