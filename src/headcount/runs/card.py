"""What the card of a pruned model says of the run that made it, from its result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml
from huggingface_hub.utils import yaml_dump

from headcount import __version__
from headcount.base.names import split_words
from headcount.base.text import printable, without_paths
from headcount.models.card import CardResults, as_code, escaped, fenced
from headcount.runs.prune_result import PruneResult, PruneScores
from headcount.runs.results import ScoreResult


def card_results(
    result: PruneResult, notes: Sequence[str] = (), command: str | None = None
) -> CardResults:
    """How the model was made, by which command, with what to be noted, and what it scores."""
    section = f"\n{_origin(result, notes, command)}\n\n{_table(result.scores)}\n"
    return CardResults(section, _scores(result.scores))


def _origin(result: PruneResult, notes: Sequence[str], command: str | None) -> str:
    heads = result.heads
    text = f"Method {as_code(result.method)}, seed {result.seed}: {heads.before} heads before, "
    text += f"{heads.after} after ({as_code(heads.kept)})."
    for step in result.repair:
        text += f" Repaired by {as_code(step.name)}"
        if step.with_gates:
            text += ", together with its gates"
        elif step.steps:
            text += f": {step.steps} steps of training"
        else:
            text += f", on inputs of {escaped(step.rows)}"
        text += "."
    if result.rows_text:
        text += f"\n\n{escaped(result.rows_text)}"
    for note in notes:
        text += f"\n\n> {escaped(note)}"
    if command:
        text += f"\n\n{fenced(without_paths(command))}"
    return text


def _table(scores: PruneScores | None) -> str:
    if scores is None:
        return "It was not scored: no task was given."
    on = f"{escaped(scores.task)} {escaped(split_words(scores.split))}, n = {scores.n}"
    rows = [f"| {on} | {escaped(scores.metric)} |", "|---|---|"]
    for name, evaluation in (("all heads", scores.before), ("this model", scores.after)):
        rows.append(f"| {name} | {_number(evaluation.score)}, {_interval(evaluation)} |")
    rows.append(f"| difference, on the same rows | {escaped(scores.lost)} |")
    if scores.random is not None:
        random = scores.random
        spread = f"{_number(random.worst)} to {_number(random.best)}"
        rows.append(
            f"| as many heads removed at random, {random.draws} draws "
            f"| {_number(random.mean)}, {spread} |"
        )
    return "\n".join(rows)


def _interval(scores: ScoreResult) -> str:
    if scores.low is None:
        reason = scores.no_interval
        return "no interval" + (f": {escaped(reason)}" if reason else "")
    return f"95 % interval [{_number(scores.low)}, {_number(scores.high)}]"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _scores(scores: PruneScores | None) -> tuple[EvalResult, ...]:
    if scores is None or scores.after.score is None:
        return ()
    result = EvalResult(
        task_type="other",
        dataset_type=printable(scores.dataset.id if scores.dataset else scores.task),
        dataset_name=printable(scores.task),
        dataset_split=printable(scores.split.partition(":")[0]),
        metric_type=printable(scores.metric),
        metric_value=scores.after.score,
    )
    return (result,)


def write_results(folder: Path, result: PruneResult) -> None:
    """`.eval_results/TASK.yaml`, which the hub shows, for a score on a data set of the hub."""
    scores = result.scores
    if scores is None or scores.dataset is None or scores.after.score is None:
        return
    entry = EvalResultEntry(
        dataset_id=scores.dataset.id,
        task_id=scores.dataset.task,
        value=round(scores.after.score, 6),
        notes=(
            f"{scores.metric} on {split_words(scores.split, scores.n)}, "
            f"{_interval(scores.after)}; headcount {__version__}"
        ),
    )
    (folder / ".eval_results").mkdir(exist_ok=True)
    text = yaml_dump(eval_result_entries_to_yaml([entry]), sort_keys=False)
    file = re.sub(r"[^\w-]", "-", scores.task[:60]) + ".yaml"
    (folder / ".eval_results" / file).write_text(text, encoding="utf-8")
