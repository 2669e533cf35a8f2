from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.errors import UsageError
from headcount.tasks import Examples, open_task
from headcount.tasks.task import sample


def test_examples_of_different_lengths_are_refused() -> None:
    with pytest.raises(UsageError, match="different lengths"):
        Examples((["a", "b"], ["c"]))
    with pytest.raises(UsageError, match="different lengths"):
        Examples((["a", "b"],), np.array([1]))


def test_take_keeps_texts_and_labels_together() -> None:
    rows = Examples((["a", "b", "c"], ["x", "y", "z"]), np.array([0, 1, 2]))
    some = rows.take(np.array([2, 0]))
    assert some.texts == (["c", "a"], ["z", "x"])
    assert some.labels is not None
    assert some.labels.tolist() == [2, 0]


@given(st.integers(1, 200), st.integers(1, 250), st.integers(0, 5))
def test_a_sample_is_seeded_sorted_and_nested(size: int, count: int, seed: int) -> None:
    rows = sample(size, count, seed)
    assert len(rows) == min(size, count)
    assert (np.diff(rows) > 0).all()
    assert rows.tolist() == sample(size, count, seed).tolist()
    assert set(sample(size, max(1, count // 2), seed)) <= set(rows)


def test_seeds_and_fractions_of_a_sample() -> None:
    assert sample(100, 20, 0).tolist() != sample(100, 20, 1).tolist()
    assert len(sample(100, 0.25, 0)) == 25
    assert len(sample(3, 0.01, 0)) == 1
    assert sample(5, 1.0, 0).tolist() == [0, 1, 2, 3, 4]
    for bad in (0, -1, 0.0, 1.5):
        with pytest.raises(UsageError, match="rows"):
            sample(10, bad, 0)


def test_a_task_loads_a_sample_and_refuses_an_unknown_split() -> None:
    task = open_task("pocket-sentiment")
    rows = task.load("dev", limit=7, seed=3)
    whole = task.load()
    assert len(rows) == 7
    assert len(whole) == 1000
    assert list(rows.texts[0]) == [whole.texts[0][i] for i in sample(1000, 7, 3)]
    with pytest.raises(UsageError, match=r"no split 'dve'. Did you mean 'dev'\?"):
        task.load("dve")
