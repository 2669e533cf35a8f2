"""What a result depends on, so that nothing goes on with something else: one identity for all.

A folder of a study or a pruned model keeps it. The same command again finds it there and goes on;
where something else is asked, the refusal says what changed. Which versions computed it, on which
device and where the model lay is kept beside it: a difference is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headcount.errors import UsageError
from headcount.models import fingerprint
from headcount.options import changed, to_plain
from headcount.pruning.methods import Method, name_of
from headcount.runs.asked import Prune
from headcount.runs.record import TOLD
from headcount.runs.subject import Subject
from headcount.runs.values import told
from headcount.tasks.loading import match


def identity(
    subject: Subject, asked: Prune, methods: Sequence[Method] = (), **more: Any
) -> dict[str, Any]:
    """Everything cuts depend on; `methods` are those of a study, `more` what else it asks.

    A study is asked about many ratios and seeds: those are its runs' own.
    """
    if subject.tokenizer is not None:
        match(subject.model, subject.tokenizer)  # names the padding token to the config
    inputs = subject.given(asked.looking, asked.scoring.max_length)
    return {
        **computed(subject),
        **more,
        **_rows(subject, asked),
        "samples": asked.looking.samples,
        "max_length": asked.scoring.max_length,
        "inputs": None if inputs is None else told(inputs),
        "recover": asked.repair.recover is not None,
        **_recovery(asked),
        "fresh": subject.fresh,
        **{name: value for method in methods for name, value in own_options(method).items()},
        "layout": subject.layout.to_json(),
        **fingerprint.identity(subject.model, subject.tokenizer),
    }


def computed(subject: Subject) -> dict[str, Any]:
    """What is recorded and may differ."""
    return {
        "model": subject.name,
        "device": str(next(subject.model.parameters()).device.type),
        "versions": fingerprint.versions(),
    }


def _recovery(asked: Prune) -> dict[str, Any]:
    solved = asked.repair.recover
    return {} if solved is None else {f"recovery.{k}": v for k, v in to_plain(solved).items()}


def own_options(method: Method) -> dict[str, str]:
    """A method's options that are not its defaults."""
    name = name_of(method)
    return {
        # a scorer's file may be made by the first run that names it
        f"{name}.{option}": str(value) if option == "scorer" else told(value)
        for option, value in changed(method).items()
    }


def _rows(subject: Subject, asked: Prune) -> dict[str, Any]:
    """Which rows are scored and which are looked at and trained on, by their content."""
    task, scoring = subject.task, asked.scoring
    if task is None:
        return {}
    return {
        "task": task.name,
        "kind": task.kind,
        "labels": list(task.labels),
        "metric": task.metric,
        "split": scoring.split or task.evaluation,
        "limit": scoring.limit,
        "seed": scoring.seed,
        "draws": scoring.draws,
        "scored": subject.rows_of(scoring.split or task.evaluation),
        "looked_at": subject.looked_at,
        "rows": subject.rows_of(subject.looked_at),
    }


def require_same(then: Any, now: Mapping[str, Any], where: Path) -> str | None:
    """Refuse what was begun with something else; what differs and may is given back, in words."""
    if not isinstance(then, dict):
        raise UsageError(
            f"{where} is there already and does not say what it was begun with; --out takes a new "
            "or empty folder, and --overwrite starts anew."
        )
    parts = [
        fingerprint.differences(
            {name: value for name, value in then.items() if (name in TOLD) == open_},
            {name: value for name, value in now.items() if (name in TOLD) == open_},
        )
        for open_ in (False, True)
    ]
    if parts[0]:
        raise UsageError(
            f"{where} was begun with something else: {parts[0]}. Ask for that again to go on with "
            "it; otherwise --out takes a new or empty folder, and --overwrite starts anew."
        )
    return f"{where} was begun elsewhere and goes on: {parts[1]}." if parts[1] else None
