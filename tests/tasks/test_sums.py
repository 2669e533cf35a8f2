from __future__ import annotations

import numpy as np

from headcount.tasks.sums import constant, from_sums, ratio, sum_by


def test_a_metric_of_sums_under_weights_is_that_of_repeated_rows() -> None:
    mean = from_sums(
        lambda said, right: np.stack([said == right, np.ones(len(right))], 1),
        lambda sums: ratio(sums[:, 0], sums[:, 1]),
    )
    said, right = np.array([1, 0, 1]), np.array([1, 1, 1])
    weights = np.array([[1.0, 1, 1], [2, 0, 0], [0, 3, 1], [0, 0, 0]])
    assert mean(said, right)(weights).tolist() == [2 / 3, 1, 0.25, 0]


def test_sums_by_group_are_those_of_a_loop() -> None:
    groups = np.array([2, 0, 1, 0, 2, 2])
    weights = np.arange(12.0).reshape(2, 6)
    wanted = [[row[groups == group].sum() for group in range(3)] for row in weights]
    assert sum_by(groups)(weights).tolist() == wanted


def test_nothing_by_zero_and_what_is_constant() -> None:
    assert ratio(np.array([1.0, 2.0]), np.array([0.0, 4.0]), nothing=7.0).tolist() == [7, 0.5]
    assert constant(np.array([3.0]))
    assert constant(np.array([3.0, 3.0]))
    assert not constant(np.array([3.0, 4.0]))
