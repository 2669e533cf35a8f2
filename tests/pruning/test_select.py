"""Every method, one contract: exact counts, seeded, all stacks, clear refusals."""

from __future__ import annotations

import pytest
import torch

from headcount.base.errors import UsageError
from headcount.base.options import types_of
from headcount.heads import Layout
from headcount.models.find import layout as layout_of_model
from headcount.pruning.methods import METHODS
from headcount.pruning.select import prepare, select
from models.zoo import build

THREE = Layout.of(encoder=[8] * 6, cross=[8] * 6, decoder=[8] * 6)
TWELVE = Layout.of(encoder=[12] * 12)


@pytest.mark.parametrize("layout", [TWELVE, THREE, Layout.of(encoder=[4, 0, 3])])
@pytest.mark.parametrize("ratio", [0, 0.05, 0.25, 1 / 3, 0.5, 0.87, 0.9, 0.95, 1])
@pytest.mark.parametrize("within", ["model", "stack", "layer"])
def test_random_is_exact(layout, ratio, within):
    mask = select(layout, "random", ratio, within=within, seed=3)
    assert len(mask) == layout.kept_at(ratio)
    if within == "layer":
        for counts, stack in zip(mask.counts().values(), layout.stacks, strict=True):
            shares = [count * (1 - ratio) for count in stack.heads]
            assert all(abs(c - s) < 1.5 for c, s in zip(counts, shares, strict=True))


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan")])
def test_a_ratio_outside_is_refused(ratio):
    with pytest.raises(UsageError, match="between 0 and 1"):
        select(TWELVE, "random", ratio)


def test_an_unknown_method_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match=r"no method 'randm'\. Did you mean 'random'"):
        select(TWELVE, "randm", 0.5)


def test_an_unknown_option_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match=r"no option 'witin'. Did you mean 'within'"):
        prepare(TWELVE, "random", witin="layer")


def test_options_are_the_methods_own():
    assert list(types_of(METHODS["random"])) == ["within", "stack", "leave"]


@pytest.mark.parametrize("method", ["surgeon", "importance", "meta"])
def test_a_layout_does_not_do_for_a_method_that_looks_inside(method):
    with pytest.raises(UsageError, match="looks into the model: its layout is not enough"):
        prepare(Layout.of(encoder=[4] * 2), method, data=[{"input_ids": [1, 2]}])


def test_a_ratio_as_text_is_refused():
    with pytest.raises(UsageError, match=r"a number between 0 and 1, not '0\.5'"):
        select(TWELVE, "random", "0.5")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("method", ["cluster", "importance", "surgeon"])
def test_a_model_without_numbers_is_refused_where_they_are_looked_at(method):
    with torch.device("meta"):
        model = build("bert")
    rows = [{"input_ids": torch.ones(2, 5, dtype=torch.long), "labels": torch.tensor([0, 1])}]
    data = {} if method == "cluster" else {"data": rows}
    with pytest.raises(UsageError, match="is on the meta device, without numbers"):
        select(model, method, 0.5, **data)
    assert len(select(model, "random", 0.5)) == len(layout_of_model(model)) // 2
