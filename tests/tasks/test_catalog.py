from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headcount.base.errors import UsageError
from headcount.tasks import TASKS, open_task
from headcount.tasks.catalog import read_task
from headcount.tasks.kinds import TASK_KINDS
from headcount.tasks.metrics import METRICS
from headcount.tasks.source import make_source


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


def test_metrics_are_those_of_the_task() -> None:
    task = open_task("mrpc")
    assert len(task.metrics) > 1
    assert open_task("mrpc", metrics=task.metrics[1]).metrics == task.metrics[1:2]
    with pytest.raises(UsageError, match="Task 'mrpc' has no metric 'bleu'"):
        open_task("mrpc", metrics=("bleu",))


def test_a_task_says_what_it_was_opened_on() -> None:
    task = open_task("pocket-paraphrase", size=40)
    assert task.source == make_source(size=40)
    source = make_source(in_memory="3 of rows, 12ab")
    with pytest.raises(UsageError, match=r"3 of rows, 12ab.* were in the memory of the process"):
        read_task("classification", source)


def test_a_kind_says_which_data_it_reads() -> None:
    summaries = {entry.name: entry.summary for entry in TASKS}
    for kind in TASK_KINDS:
        assert summaries[kind.name].startswith("your own data: ")


def test_windows_are_for_texts_in_one_piece() -> None:
    with pytest.raises(
        UsageError, match="'pocket-sentiment' has no windows: --window is for causal"
    ):
        open_task("pocket-sentiment", window=8)
    with pytest.raises(UsageError, match="'pocket-sentiment' has no prompts: --template is for"):
        open_task("pocket-sentiment", template="{}")


@pytest.mark.parametrize("option", [["--window", "8"], ["--template", "Q: {}"]])
def test_settings_that_a_task_has_no_use_for_are_refused(
    option: list[str], cli: Callable[..., Any]
) -> None:
    ran = cli("evaluate", "pocket-bert", "--task", "pocket-sentiment", *option)
    assert (ran.code, option[0] in ran.err) == (2, True), ran.err


def test_rows_that_do_not_overlap_have_no_stride(tmp_path: Path) -> None:
    (tmp_path / "dev.txt").write_text("a b c\n" * 9)
    for name in ("causal-lm", "masked-lm"):
        with pytest.raises(UsageError, match=f"Task '{name}' has no rows that overlap: --stride"):
            open_task(name, data=tmp_path / "dev.txt", stride=4)
    assert open_task("causal-lm", data=tmp_path / "dev.txt", window=8, stride=4).stride == 4
