"""A distance for every pair of heads, from a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.likeness.measure import Progress
from headcount.likeness.measure import redundancy as measure
from headcount.models.find import layout
from headcount.runs.carriers.common import (
    RunOutput,
    depends_on,
    name_of,
    task_of,
    used_inputs,
)
from headcount.runs.kinds import RedundancyOptions
from headcount.runs.run import Run
from headcount.runs.values import told
from headcount.tasks.encoding import EncodedRows
from headcount.tasks.inputs import read_inputs
from headcount.tasks.opening import open_model


def redundancy(
    run: Run,
    out: str | Path | None,
    *,
    report: Progress | None,
    state: Path | None = None,
    **more: Any,
) -> RunOutput:
    """Measure it on what the run reads, into `out`; what is interrupted goes on from `state`."""
    asked = run.asked(RedundancyOptions)
    model, tokenizer, rows, name = _open(run)
    found = measure(
        model,
        rows,
        samples=asked.input_options.most,
        seed=asked.input_options.seed,
        tokenizer=tokenizer,
        name=name,
        state=state,
        keep_state=True,
        progress=report,
        **vars(asked.distance_options),
    )
    if out is not None:
        found.save(out)
    about = depends_on(run, model, tokenizer, inputs=told(rows))
    return RunOutput(found.to_json(), about, {"measured": used_inputs(rows, name)}, found)


def plan(run: Run) -> dict[str, Any]:
    """What would be measured, on what."""
    asked = run.asked(RedundancyOptions)
    model, _, rows, name = _open(run)
    return {
        "class": type(model).__name__,
        "heads": repr(layout(model)),
        "inputs": f"{min(len(rows), asked.input_options.most)} ({name})",
        "distances": ", ".join(asked.distance_options.distances),
    }


def _open(run: Run) -> tuple[PreTrainedModel, PreTrainedTokenizerBase | None, EncodedRows, str]:
    """(model, tokenizer, what it reads and what that is)."""
    task = None if run.task is None else task_of(run)
    model, tokenizer, _ = open_model(name_of(run), run.model_options, reads=True)
    return (
        model,
        tokenizer,
        *read_inputs(
            model, tokenizer, run.asked(RedundancyOptions).input_options, task, decides=True
        ),
    )
