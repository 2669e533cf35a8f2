from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from headcount.models.batches import ModelBatch
from headcount.tasks import Examples, Task
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.kinds.classification import Classification
from headcount.tasks.rows import ScoredRows

KIND = Classification()


def test_means_are_torchs_own_and_a_blank_row_changes_nothing() -> None:
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 2, 1])
    mean = KIND.losses(logits, ModelBatch({}, labels), total=True) / KIND.counts(labels).sum()
    torch.testing.assert_close(mean, functional.cross_entropy(logits, labels))
    smooth = KIND.losses(logits, ModelBatch({}, labels), smoothing=0.1, total=True) / 5
    want = functional.cross_entropy(logits, labels, label_smoothing=0.1)
    torch.testing.assert_close(smooth, want)
    blank = labels.clone()
    blank[4] = -100
    whole = KIND.losses(logits, ModelBatch({}, blank), total=True)
    torch.testing.assert_close(whole, functional.cross_entropy(logits[:4], labels[:4]) * 4)
    assert KIND.counts(blank).sum() == 4


def test_classes_the_task_lacks_are_always_wrong(task: Task) -> None:
    labels = np.array([0, 1, 1])
    scored = ScoredRows(
        task=task, split="dev", examples=Examples((["a", "b", "c"],), labels),
        rows=EncodedRows({"input_ids": [[1]] * 3}), order=np.array([2, 0]), fingerprint="",
    )  # fmt: skip
    kept = np.array([[0.0, 1.0, 9.0], [9.0, 1.0, 0.0], [0.0, 9.0, 1.0]])
    outcome, table = KIND.score(kept, scored)
    assert list(outcome.predictions) == [0, 1, 2]
    assert table["prediction"].tolist() == ["cat", "dog", "(other)"]
    losses, counts = KIND.kept_losses(table, scored)
    want = functional.cross_entropy(
        torch.from_numpy(kept), torch.tensor([2, 0, 0]), reduction="none"
    )
    np.testing.assert_allclose(losses, want.numpy())
    assert counts.tolist() == [1, 1, 1]


def test_a_new_head_has_the_tasks_classes_unless_it_has_them(task: Task) -> None:
    saved: Any = SimpleNamespace(
        architectures=["BertForSequenceClassification"], num_labels=2, id2label={0: "dog", 1: "cat"}
    )
    assert KIND.config_changes(saved, task) == {}
    saved.id2label = {0: "wet", 1: "dry"}
    assert KIND.config_changes(saved, task) == {
        "num_labels": 2, "id2label": {0: "cat", 1: "dog"}, "label2id": {"cat": 0, "dog": 1},
    }  # fmt: skip
