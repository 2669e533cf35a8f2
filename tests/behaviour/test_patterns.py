from __future__ import annotations

import numpy as np
import pytest
import torch

from behaviour.oracles import by_hand
from headcount.behaviour.patterns import Band, Side, attention_scores, visible_band, weights_for

LENGTHS = (9, 6, 14, 2)
WIDE = max(LENGTHS)


def rows(seed, *, left=False, lengths=LENGTHS):
    """(sides' parts by row, Side): ids of few kinds, so that many come again; 0 and 1 special."""
    rng = np.random.default_rng(seed)
    ids = [[0, *rng.integers(2, 6, n - 2).tolist(), 1] for n in lengths]
    padded, real = np.full((2, len(ids), max(lengths)), 0)
    for row, own in enumerate(ids):
        at = slice(max(lengths) - len(own), None) if left else slice(len(own))
        padded[row, at] = own
        real[row, at] = 1
    numbers, there = torch.from_numpy(padded), torch.from_numpy(real).bool()
    text = there & (numbers > 1)
    return ids, Side(numbers, there, text, there & (numbers == 1))


def attention_for(queries, keys, sees, heads=3, seed=0):
    """(input, head, query, key) random rows over what is seen."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(queries.ids), heads, queries.ids.shape[1], keys.ids.shape[1])
    logits = 2 * torch.randn(shape, generator=generator)
    own, other = queries.positions[:, :, None], keys.positions[:, None]
    visible = keys.real[:, None] & sees(own, other)
    out = logits.masked_fill(~visible[:, None], -torch.inf).softmax(-1).nan_to_num(0)
    # a row of padding may look anywhere
    return torch.where(queries.real[:, None, :, None], out, 1 / shape[-1])


SEES = {
    "all": lambda i, j: (i == i) & (j == j),
    "causal": lambda i, j: j <= i,
    "window": lambda i, j: (j - i <= 2) & (i - j <= 2),
    "causal window": lambda i, j: (j <= i) & (i - j <= 3),
}


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("kind", SEES)
def test_everything_is_as_by_hand(kind: str, left: bool) -> None:
    ids, side = rows(1, left=left)
    attention = attention_for(side, side, SEES[kind])
    band = visible_band(attention, side, side)
    weights = weights_for(side, side, band)
    found = attention_scores(attention, weights).numpy()
    for row, own in enumerate(ids):
        at = slice(WIDE - len(own), None) if left else slice(len(own))
        text = [token > 1 for token in own]
        separators = [token == 1 for token in own]
        for head in range(3):
            alone = attention[row, head][at][:, at].double().numpy()
            values, chances = by_hand(alone, own, text, separators, SEES[kind])
            np.testing.assert_allclose(found[row, head], values, atol=1e-6, err_msg=f"{row}")
        there = ~np.isnan(values)
        np.testing.assert_allclose(weights.chance[row].numpy()[there], chances[there], atol=1e-6)


def test_equal_attention_comes_to_chance() -> None:
    _, side = rows(2)
    visible = (side.real[:, :, None] & side.real[:, None]).float()
    attention = (visible / visible.sum(-1, keepdim=True).clamp_min(1))[:, None]
    weights = weights_for(side, side, visible_band(attention, side, side))
    found = attention_scores(attention, weights)[:, 0].numpy()
    there = ~np.isnan(found)
    assert there[:, 0].sum() == 3, "a row without text has nothing"
    np.testing.assert_allclose(found[there], weights.chance.numpy()[there], rtol=1e-5)


def test_cross_attention_has_what_makes_sense() -> None:
    ids, queries = rows(3)
    source, keys = rows(4, lengths=(5, 12, 7, 4))
    attention = attention_for(queries, keys, SEES["all"])
    weights = weights_for(queries, keys, None)
    found = attention_scores(attention, weights).numpy()
    for row, own in enumerate(ids):
        text = [token > 1 for token in own]
        other = source[row], [token == 1 for token in source[row]]
        for head in range(3):
            alone = attention[row, head][: len(own), : len(source[row])].double().numpy()
            values, _ = by_hand(alone, own, text, None, SEES["all"], other)
            np.testing.assert_allclose(found[row, head], values, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "band"),
    [
        ("all", Band((8, 5, 13, 1), (8, 5, 13, 1))),
        ("causal", Band((8, 5, 13, 1), (0, 0, 0, 0))),
        ("window", Band((2, 2, 2, 1), (2, 2, 2, 1))),
        ("causal window", Band((3, 3, 3, 1), (0, 0, 0, 0))),
    ],
)
def test_how_far_a_layer_sees(kind: str, band: Band) -> None:
    _, side = rows(5)
    assert visible_band(attention_for(side, side, SEES[kind]), side, side) == band


def test_padding_never_counts() -> None:
    _, side = rows(6)
    attention = attention_for(side, side, SEES["all"])
    weights = weights_for(side, side, visible_band(attention, side, side))
    expected = attention_scores(attention, weights)
    noise = torch.rand_like(attention)
    changed = torch.where(side.real[:, None, :, None], attention, noise)
    torch.testing.assert_close(attention_scores(changed, weights), expected, equal_nan=True)


def test_a_pattern_names_its_keys() -> None:
    _, side = rows(7)
    attention = attention_for(side, side, SEES["all"])
    weights = weights_for(side, side, visible_band(attention, side, side))
    before = weights.pattern("previous")[0]
    assert before.nonzero().tolist() == [[i, i - 1] for i in range(1, 8)]
