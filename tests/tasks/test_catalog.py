from __future__ import annotations

import subprocess
import sys

import pytest

from headcount.base.errors import UsageError
from headcount.tasks import TASKS, open_task
from headcount.tasks.metrics import METRICS


def test_unknown_task_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no task 'ssst2'. Did you mean 'sst2'\?"):
        open_task("ssst2")


def test_a_task_passes_through() -> None:
    task = open_task("pocket-sentiment")
    assert open_task(task) is task


def test_unknown_data_settings_and_too_many_texts_are_refused() -> None:
    with pytest.raises(UsageError, match="no data setting colour"):
        open_task("sst2", colour="red")
    with pytest.raises(UsageError, match="one or two texts, not 3"):
        open_task("classification", columns=("a", "b", "c"))


def test_every_task_has_a_summary_and_known_metrics() -> None:
    assert len({entry.name for entry in TASKS}) == len(TASKS) >= 24
    for entry in TASKS:
        assert entry.summary
        if entry.name.startswith("pocket-") or entry.summary.startswith("GLUE"):
            task = open_task(entry.name)
            assert task.name == entry.name
            assert set(task.metrics) <= set(METRICS)


def test_listing_tasks_needs_neither_torch_nor_numpy() -> None:
    code = (
        "import sys, headcount.tasks as t\n"
        "assert len(t.TASKS) > 9\n"
        "print({'torch', 'numpy', 'transformers', 'datasets'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_windows_are_for_texts_in_one_piece() -> None:
    with pytest.raises(
        UsageError, match="'pocket-sentiment' has no windows: --window is for causal"
    ):
        open_task("pocket-sentiment", window=8)
