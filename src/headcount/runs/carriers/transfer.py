"""Two checkpoints compared head by head, from a run whose model is the first of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.changes.pair import open_pair
from headcount.changes.study import Bar, no_bar, transfer_study
from headcount.models import fingerprint
from headcount.runs.carriers.common import (
    RunOutput,
    depends_on,
    name_of,
    task_of,
    used_inputs,
)
from headcount.runs.kinds import TransferOptions
from headcount.runs.run import Run
from headcount.runs.values import told
from headcount.tasks import TASKS, Task
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.inputs import read_inputs
from headcount.tasks.opening import open_several
from headcount.tasks.source import Source


def transfer(run: Run, out: object, *, bar: Bar | None = None, **_: Any) -> RunOutput:
    """Compare the run's model with the fine-tuned one it names."""
    asked = run.asked(TransferOptions)
    models, tasks, tokenizer, rows, name = _open(run)
    found = transfer_study(
        models, tasks, rows, tokenizer=tokenizer, input_options=asked.input_options,
        options=asked.drift_options, name=name, bar=bar or no_bar,
    )  # fmt: skip
    named = {"pretrained": run.model, "finetuned": asked.finetuned}
    found = replace(found, made={**found.made, **named})
    second = fingerprint.identity(models[1], tokenizer)
    about = depends_on(run, models[0], tokenizer, inputs=told(rows), finetuned=second)
    return RunOutput(found.to_json(), about, {"measured": used_inputs(rows, name)}, found)


def plan(run: Run) -> dict[str, Any]:
    """What would be compared, on what."""
    asked = run.asked(TransferOptions)
    models, _, _, rows, name = _open(run)
    return {
        "classes": ", ".join(type(model).__name__ for model in models),
        "inputs": f"{min(len(rows), asked.input_options.most)} ({name})",
        "recall": asked.drift_options.recall,
    }


def _open(
    run: Run,
) -> tuple[
    list[PreTrainedModel], list[Task | None], PreTrainedTokenizerBase | None, EncodedRows, str
]:
    """(the two models, their tasks, their tokenizer, what both read and what that is)."""
    asked, before = run.asked(TransferOptions), None
    options = asked.drift_options
    if options.pretraining_task is not None:
        before = TASKS[options.pretraining_task](Source(data=options.pretraining_data))
    tasks = [before, None if run.task is None else task_of(run)]
    models, tokenizer = open_several([name_of(run), asked.finetuned], run.model_options, tasks)
    open_pair(*models)
    rows, name = read_inputs(models[0], tokenizer, asked.input_options, tasks[1])
    return models, tasks, tokenizer, rows, name
