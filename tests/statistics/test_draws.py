from __future__ import annotations

import numpy as np
import pytest

from headcount.statistics.draws import bootstrap, row_weights

ROWS = 12
RNG = np.random.default_rng(0)
VALUES = RNG.normal([[0.0], [1.0], [3.0]], 1.0, (3, ROWS)) + 2 * RNG.normal(size=ROWS)
"""(seed, row): rows that are hard are hard with every seed."""


def mean_of(values: np.ndarray):
    return lambda weights: weights @ values / weights.sum(1)


def spread_of(values: np.ndarray):
    """A score that is no mean of rows: their variance."""
    return lambda weights: (
        weights @ values**2 / weights.sum(1) - (weights @ values / weights.sum(1)) ** 2
    )


SCORES = [mean_of(own) for own in VALUES]


def plainly(same_rows: bool, draws: int, score=np.mean) -> np.ndarray:
    """Seeds drawn, rows drawn for each: without weights, with random numbers of its own."""
    rng = np.random.default_rng(99)
    seeds = rng.integers(len(VALUES), size=(draws, len(VALUES), 1))
    rows = rng.integers(ROWS, size=(draws, 1 if same_rows else len(VALUES), ROWS))
    return score(VALUES[seeds, rows], axis=2).mean(1)


@pytest.mark.parametrize("same_rows", [True, False])
@pytest.mark.parametrize(("score", "plain"), [(mean_of, np.mean), (spread_of, np.var)])
def test_seeds_and_rows_as_they_are_drawn_plainly(same_rows, score, plain) -> None:
    fast = bootstrap([score(own) for own in VALUES], ROWS, draws=20_000, same_rows=same_rows)
    slow = plainly(same_rows, 20_000, plain)
    assert fast.mean() == pytest.approx(slow.mean(), rel=0.03)
    assert fast.std() == pytest.approx(slow.std(), rel=0.03)
    ends = [0.025, 0.975]
    assert np.quantile(fast, ends) == pytest.approx(np.quantile(slow, ends), abs=0.1 * slow.std())


def test_rows_that_all_seeds_share_are_not_drawn_for_each() -> None:
    shared = bootstrap(SCORES, ROWS, draws=4000)
    apart = bootstrap(SCORES, ROWS, draws=4000, same_rows=False)
    assert shared.std() > 1.1 * apart.std()


def test_one_seed_draws_rows_only() -> None:
    found = bootstrap(SCORES[:1], ROWS, draws=50, seed=7)
    weights = np.concatenate(list(row_weights(ROWS, 50, 7)))
    assert (found == SCORES[0](weights)).all()
    assert (bootstrap(SCORES[:1], ROWS, draws=50, seed=7, same_rows=False) == found).all()


def test_numbers_draw_seeds_only() -> None:
    numbers = VALUES.mean(1).tolist()
    found = bootstrap(numbers, 0, draws=20_000)
    rng = np.random.default_rng(5)
    slow = rng.choice(numbers, (20_000, 3)).mean(1)
    assert found.mean() == pytest.approx(slow.mean(), rel=0.02)
    assert found.std() == pytest.approx(slow.std(), rel=0.02)
    assert np.isnan(bootstrap([0.5], 0, draws=3)).all()
    with pytest.raises(TypeError, match="all seeds or of none"):
        bootstrap([0.5, SCORES[0]], ROWS)


def test_the_same_seed_draws_the_same() -> None:
    for same in (True, False):
        first = bootstrap(SCORES, ROWS, draws=9, seed=3, same_rows=same)
        assert (first == bootstrap(SCORES, ROWS, draws=9, seed=3, same_rows=same)).all()
        assert (first != bootstrap(SCORES, ROWS, draws=9, seed=4, same_rows=same)).any()
    assert bootstrap(SCORES, ROWS, draws=1, same_rows=False).shape == (1,)  # a seed is not drawn


def test_weights_are_counts_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(row_weights(ROWS, 10, 0)))
    assert (whole.sum(1) == ROWS).all()
    monkeypatch.setattr("headcount.statistics.draws.LARGEST", 3 * ROWS)
    pieces = list(row_weights(ROWS, 10, 0))
    assert [len(piece) for piece in pieces] == [3, 3, 3, 1]
    assert (np.concatenate(pieces) == whole).all()
