"""What the card of a pruned model says of the run that made it, read from its record."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml
from huggingface_hub.utils import yaml_dump

from headcount import __version__
from headcount.base.names import split_words
from headcount.base.text import printable
from headcount.models.card import CardResults, as_code, escaped, fenced

DAMAGED = (KeyError, TypeError, ValueError, AttributeError)


def card_results(record: Mapping[str, Any]) -> CardResults:
    """How the model was made and what it scores; nothing where a record is damaged."""
    try:
        section = f"\n{_how(record)}\n\n{_table(record)}\n"
    except DAMAGED:
        section = ""
    try:
        scores = (_score(record["scores"]),)
    except DAMAGED:
        scores = ()
    return CardResults(section, scores)


def _how(record: Mapping[str, Any]) -> str:
    heads = record["heads"]
    text = f"Method {as_code(record['method'])}, seed {escaped(record['seed'])}: "
    text += f"{escaped(heads['before'])} heads before, {escaped(heads['after'])} after "
    text += f"({as_code(heads['kept'])})."
    for step in record["repair"]:
        text += f" Repaired by {as_code(step['name'])}"
        if step.get("with_gates"):
            text += ", together with its gates"
        elif step["steps"]:
            text += f": {escaped(step['steps'])} steps of training"
        else:
            text += f", on inputs of {escaped(step['rows'])}"
        text += "."
    if record.get("rows_text"):
        text += f"\n\n{escaped(record['rows_text'])}"
    for note in record.get("notes") or []:
        text += f"\n\n> {escaped(note)}"
    if record["command"]:
        text += f"\n\n{fenced(without_paths(record['command']))}"
    return text


def without_paths(command: str) -> str:
    """A command with only the last part of every path that is this machine's.

    >>> without_paths("headcount prune /home/me/run --out=~/half --data glue/mrpc")
    'headcount prune run --out=half --data glue/mrpc'
    """

    def short(word: str) -> str:
        option, sign, value = word.partition("=") if word.startswith("-") else ("", "", word)
        if value.startswith(("/", "~", "../")):
            value = PurePath(value).name or value
        return f"{option}{sign}{value}"

    try:
        words = shlex.split(command)
    except ValueError:
        # no shell would take it either: a quote is left open
        return re.sub(r"(?<![\w.])(/|~|\.\./)\S*/", "", command)
    return shlex.join(map(short, words))


def _table(record: Mapping[str, Any]) -> str:
    scores = record.get("scores")
    if scores is None:
        return "It was not scored: no task was given."
    on = f"{escaped(scores['task'])} {escaped(split_words(scores['split']))}, n = "
    on += escaped(scores["n"])
    rows = [f"| {on} | {escaped(scores['metric'])} |", "|---|---|"]
    for name, evaluation in (("all heads", scores["before"]), ("this model", scores["after"])):
        rows.append(f"| {name} | {_number(evaluation['score'])}, {_interval(evaluation)} |")
    if "lost" in scores:
        rows.append(f"| difference, on the same rows | {escaped(scores['lost'])} |")
    if "random" in scores:
        draw = scores["random"]
        spread = f"{_number(draw['worst'])} to {_number(draw['best'])}"
        rows.append(
            f"| as many heads removed at random, {escaped(draw['draws'])} draws "
            f"| {_number(draw['mean'])}, {spread} |"
        )
    return "\n".join(rows)


def _interval(scored: Mapping[str, Any]) -> str:
    if scored["low"] is None:
        why = scored.get("no_interval")
        return "no interval" + (f": {escaped(why)}" if why else "")
    return f"95 % interval [{_number(scored['low'])}, {_number(scored['high'])}]"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _score(scores: Mapping[str, Any]) -> EvalResult:
    return EvalResult(
        task_type="other",
        dataset_type=printable(scores.get("dataset", {}).get("id", scores["task"])),
        dataset_name=printable(scores["task"]),
        dataset_split=printable(str(scores["split"]).partition(":")[0]),
        metric_type=printable(scores["metric"]),
        metric_value=float(scores["after"]["score"]),
    )


def write_results(folder: Path, record: Mapping[str, Any]) -> None:
    """`.eval_results/TASK.yaml`, which the hub shows, for a score on a data set of the hub."""
    try:
        scores = record["scores"]
        after = scores["after"]
        file = re.sub(r"[^\w-]", "-", str(scores["task"])[:60]) + ".yaml"
        entry = EvalResultEntry(
            dataset_id=scores["dataset"]["id"],
            task_id=scores["dataset"]["task"],
            value=round(float(after["score"]), 6),
            notes=(
                f"{scores['metric']} on {split_words(scores['split'], scores['n'])}, "
                f"{_interval(after)}; headcount {__version__}"
            ),
        )
    except DAMAGED:
        return
    (folder / ".eval_results").mkdir(exist_ok=True)
    text = yaml_dump(eval_result_entries_to_yaml([entry]), sort_keys=False)
    (folder / ".eval_results" / file).write_text(text, encoding="utf-8")
