from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headcount.base.arrays import read_npz
from headcount.changes.maps import AttentionMaps, HeadUse, Tokens
from headcount.heads import Layout, Mask
from headcount.views.attention import closeup, overview
from headcount.views.figures import save_figure

LAYOUT = Layout.of(encoder=[3, 2], cross=[1, 1])
WORDS = ("the", "lawyer", "sees", "us")


@pytest.fixture
def maps() -> AttentionMaps:
    """Every head looks at a place of its own; encoder heads 0.1 and 1.1 and all of cross go."""
    rng = np.random.default_rng(0)
    found = {}
    for head in LAYOUT:
        drawn = rng.random((2 if head.stack == "cross" else 4, 4)).astype(np.float32)
        found[HeadUse(head)] = drawn / drawn.sum(1, keepdims=True)
    mask = Mask(LAYOUT, frozenset(h for h in LAYOUT if h.stack == "encoder" and h.index != 1))
    return AttentionMaps(
        layout=LAYOUT,
        tokens={"encoder": Tokens(WORDS, WORDS), "cross": Tokens(("er", "sieht"), WORDS)},
        before=found,
        after={run: values**2 for run, values in found.items() if run.head in mask},
        mask=mask,
    )


def drawn(axes: Any) -> dict[tuple[int, int], np.ndarray]:
    """(column, row) -> what is drawn there."""
    return {
        (round(i.get_extent()[0]), round(i.get_extent()[3])): np.asarray(i.get_array())
        for i in axes.images
    }


def test_heads_stand_where_they_stood(maps: AttentionMaps, tmp_path) -> None:
    figure = overview(maps, "encoder", ["big", "small"])
    axes = figure.axes[0]
    # rows: layer 0, after it, layer 1, after it
    assert set(drawn(axes)) == {(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 2), (1, 2), (0, 3)}
    before, after = maps.before, maps.after or {}
    own = {(run.head.layer, run.head.index): run for run in before if run.head.stack == "encoder"}
    assert np.array_equal(drawn(axes)[2, 0], before[own[0, 2]])
    assert np.array_equal(drawn(axes)[2, 1], after[own[0, 2]])
    gone = [patch for patch in axes.patches if patch.get_hatch()]
    assert sorted((round(p.get_x()), round(p.get_y())) for p in gone) == [(1, 1), (1, 3)]
    assert len({image.get_clim() for image in axes.images}) == 1
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1"]
    for ending in ("png", "svg"):
        assert save_figure(figure, tmp_path / f"m.{ending}").stat().st_size > 1000
    text = (tmp_path / "m.svg").read_text(encoding="utf-8")
    assert "the lawyer sees us" in text
    assert "and pruned: small (3 of 5 heads)" in figure.get_suptitle().replace("\n", " ")


def test_one_model_and_a_stack_with_two_texts(maps: AttentionMaps, tmp_path) -> None:
    figure = overview(replace(maps, after=None, mask=None), "cross", ["big"])
    assert set(drawn(figure.axes[0])) == {(0, 0), (0, 1)}
    assert not figure.axes[0].patches
    save_figure(figure, tmp_path / "m.svg")
    text = (tmp_path / "m.svg").read_text(encoding="utf-8")
    assert "er sieht" in text
    assert "the lawyer sees us" in text


def test_all_of_a_stack_is_gone(maps: AttentionMaps, tmp_path) -> None:
    for draw in (overview, closeup):
        figure = draw(maps, "cross", ["big", "small"])
        hatched = [p for axes in figure.axes for p in axes.patches if p.get_hatch()]
        assert len(hatched) == 2
        save_figure(figure, tmp_path / "m.png")


def test_a_shared_layer_has_a_row_for_each_run(maps: AttentionMaps) -> None:
    head = next(iter(LAYOUT))
    shared = {HeadUse(head, run): maps.before[HeadUse(head)] for run in range(3)}
    figure = overview(replace(maps, before=shared, after=None, mask=None), "encoder", ["albert"])
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["0, run 0", "0, run 1", "0, run 2"]


def test_large_maps_have_their_tokens(maps: AttentionMaps, tmp_path) -> None:
    few = maps.only(stack="encoder", layers=[0])
    figure = closeup(few, "encoder", ["big", "small"])
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]
    assert titles[:3] == [f"layer 0, head {head}: before" for head in range(3)]
    assert titles[3:] == [
        "layer 0, head 0: after", "layer 0, head 1: removed", "layer 0, head 2: after",
    ]  # fmt: skip
    first = figure.axes[0]
    assert tuple(label.get_text() for label in first.get_xticklabels()) == WORDS
    assert tuple(label.get_text() for label in first.get_yticklabels()) == WORDS
    save_figure(figure, tmp_path / "m.png")


def test_one_head_before_and_after_side_by_side(maps: AttentionMaps) -> None:
    one = maps.only(stack="encoder", layers=[1], heads=[0])
    figure = closeup(one, "encoder", ["big", "small"])
    places = [axes.get_subplotspec() for axes in figure.axes[:2]]
    assert [(p.rowspan.start, p.colspan.start) for p in places] == [(0, 0), (0, 1)]
    run = next(iter(one.before))
    for axes, side in zip(figure.axes, (one.before, one.after or {}), strict=False):
        assert np.array_equal(axes.images[0].get_array(), side[run])


def test_places_that_are_no_tokens_are_numbered(maps: AttentionMaps) -> None:
    odd = replace(maps, tokens={"encoder": Tokens(WORDS[:2], WORDS[:2])})
    figure = closeup(odd.only(layers=[0], heads=[0]), "encoder", ["pooled", "small"])
    assert "the" not in [label.get_text() for label in figure.axes[0].get_xticklabels()]


def test_the_maps_are_kept_beside_their_numbers(maps: AttentionMaps, tmp_path) -> None:
    maps.save(tmp_path, maps.to_json())
    kept = read_npz(tmp_path / "attention.npz", "file of attention maps")
    assert json.loads(str(kept.pop("about")))["kind"] == "attention-maps"
    assert len(kept) == len(maps.before) + len(maps.after or {})
    for side, own in (("before", maps.before), ("after", maps.after or {})):
        for run, values in own.items():
            np.testing.assert_allclose(kept[f"{side}/{run.head}/0"], values, atol=5e-4)
