from __future__ import annotations

from typing import Any

import numpy as np

from headcount.tasks import open_task
from headcount.tasks.encoding import EncodedRows, encode
from headcount.tasks.kinds import task_kind
from headcount.training.order import EpochOrder, TrainingRows, examples_seen


def rows(count: int = 10, **settings: Any) -> TrainingRows:
    ids = [[1] * (1 + i % 7) for i in range(count)]
    encoded = EncodedRows({"input_ids": ids}, np.arange(count))
    return TrainingRows(encoded, task_kind("classification"), None, **settings)


def test_every_epoch_has_its_own_order_and_all_rows() -> None:
    order = EpochOrder(rows(), seed=3, batch=4)
    first = list(order)
    assert sorted(first) == list(range(10))
    assert first == list(order)
    order.set_epoch(1)
    assert list(order) != first
    assert list(EpochOrder(rows(), seed=4, batch=4)) != first


def test_filling_up_adds_blank_rows_that_count_nothing() -> None:
    data = rows()
    order = EpochOrder(data, seed=0, batch=4, fill=True)
    assert len(order) == len(list(order)) == 12
    assert list(order)[10:] == [10, 10]
    assert data[10][0]["labels"] == -100
    assert data[3][0]["labels"] == 3
    batch = data.collate([data[3], data[10]])
    assert batch["labels"].tolist() == [3, -100]


def test_like_lengths_lie_together_and_nothing_is_lost() -> None:
    data = rows(700)
    order = EpochOrder(data, seed=0, batch=7, like_lengths=True)
    seen = list(order)
    assert sorted(seen) == list(range(700))
    lengths = np.array([len(data[i][0]["input_ids"]) for i in seen]).reshape(-1, 7)
    spread = np.ptp(lengths, axis=1).mean()
    plain = EpochOrder(data, seed=0, batch=7)
    random = np.array([len(data[i][0]["input_ids"]) for i in plain]).reshape(-1, 7)
    assert spread < 0.5 < np.ptp(random, axis=1).mean()


def test_masking_changes_with_the_epoch_and_only_with_it(tokenizer: Any) -> None:
    task = open_task("pocket-corpus")
    encoded = encode(task, task.load(limit=5), tokenizer, masked=False)
    data = TrainingRows(encoded, task_kind("masked-lm"), tokenizer, seed=1)
    order = EpochOrder(data, seed=1, batch=2)
    first = data[3]
    assert first == data[3]
    assert set(first[0]["labels"]) != {-100}
    order.set_epoch(1)
    assert data[3] != first
    order.set_epoch(0)
    assert data[3] == first
    assert set(data[5][0]["labels"]) == {-100}


def test_an_example_of_several_rows_is_ordered_and_batched_as_one() -> None:
    ids, owners = [[1] * n for n in (2, 9, 3, 3, 5)], np.array([0, 1, 1, 2, 2])
    encoded = EncodedRows({"input_ids": ids}, np.arange(5), examples=owners)
    data = TrainingRows(encoded, task_kind("classification"), None)
    order = EpochOrder(data, seed=0, batch=2, like_lengths=True, fill=True)
    assert (len(data), len(order)) == (3, 4)
    assert data.lengths.tolist() == [2, 9, 5]
    assert [item["labels"] for item in data[1]] == [1, 2]
    assert [item["labels"] for item in data[3]] == [-100]
    batch = data.collate([data[2], data[0]])
    assert batch["examples"].tolist() == [2, 2, 0]
    assert batch["labels"].tolist() == [3, 4, 0]


def test_rows_seen_count_the_short_last_batch() -> None:
    assert [examples_seen(10, 4, steps) for steps in range(5)] == [0, 4, 8, 10, 14]
