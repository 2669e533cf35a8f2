"""What a study depends on, so that it never goes on with something else: one identity for all.

A folder of a curve, a comparison, a sweep or a pruned model keeps it. The same command again finds
it there and goes on; where something else is asked, the refusal says what changed. Which versions
computed it, on which device and where the model lay is kept beside it: a difference is told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from headcount.errors import UsageError
from headcount.models import fingerprint
from headcount.studies.trial import Trial
from headcount.tasks.encoding import Encoded, rows_fingerprint
from headcount.tasks.loading import match

TOLD = ("model", "device", "versions")
"""What is recorded and may differ."""


def identity(trial: Trial, options: Mapping[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Everything the results of a trial depend on; `options` are by method, `more` the study's."""
    if trial.tokenizer is not None:
        match(trial.model, trial.tokenizer)  # names the padding token to the config
    named = {
        # a scorer's file may be made by the first run that names it
        f"{method}.{name}": str(value) if name == "scorer" else told(value)
        for method, own in options.items()
        for name, value in own.items()
    }
    return {
        "model": trial.model.name_or_path or type(trial.model).__name__,
        "device": str(next(trial.model.parameters()).device.type),
        "versions": fingerprint.versions(),
        **more,
        **_rows(trial),
        "samples": trial.samples,
        "max_length": trial.max_length,
        "inputs": None if trial.inputs is None else told(trial.inputs),
        "recover": trial.recover,
        "fresh": trial.fresh,
        **named,
        "layout": trial.layout.to_json(),
        **fingerprint.identity(trial.model, trial.tokenizer),
    }


def _rows(trial: Trial) -> dict[str, Any]:
    """Which rows are scored and which are looked at and trained on, by their content."""
    task = trial.task
    if task is None:
        return {}
    return {
        "task": task.name,
        "kind": task.kind,
        "labels": list(task.labels),
        "metric": task.metric,
        "split": trial.split or task.evaluation,
        "limit": trial.limit,
        "seed": trial.seed,
        "draws": trial.draws,
        "scored": trial.rows_of(trial.split or task.evaluation),
        "looked_at": trial.looked_at,
        "rows": trial.rows_of(trial.looked_at),
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


def told(value: Any) -> str:
    """A value of any kind in a few words: itself when short, else a short name for its content.

    >>> told(0.5), told("l1"), told([0.1, 0.2])
    ('0.5', 'l1', '[0.1, 0.2]')
    """
    if isinstance(value, Encoded):
        return rows_fingerprint(value)
    if isinstance(value, str | Path) and Path(value).is_file():
        return f"{value} {hashlib.blake2b(Path(value).read_bytes(), digest_size=8).hexdigest()}"
    if value is None or isinstance(value, str | int | float | Path):
        return str(value)
    if isinstance(value, list | tuple) and all(isinstance(each, int | float) for each in value):
        return str(list(value))
    if isinstance(value, list | tuple) and all(isinstance(each, str | Path) for each in value):
        return ", ".join(told(each) for each in value)
    digest = hashlib.blake2b(digest_size=8)
    for piece in _pieces(value):
        digest.update(piece)
    return f"{type(value).__name__} {digest.hexdigest()}"


def _pieces(value: Any) -> Iterator[bytes]:
    """The content of a nest of values, piece by piece."""
    yield type(value).__name__.encode()
    if isinstance(value, Tensor):
        yield f"{tuple(value.shape)}{value.dtype}".encode()
        yield fingerprint.raw(value).tobytes()
    elif isinstance(value, np.ndarray):
        yield f"{value.shape}{value.dtype}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Encoded):
        yield rows_fingerprint(value).encode()
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield str(name).encode()
            yield from _pieces(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _pieces(item)
    elif hasattr(value, "to_json"):
        yield json.dumps(value.to_json(), sort_keys=True, default=str).encode()
    elif is_dataclass(value):
        for each in fields(value):
            yield each.name.encode()
            yield from _pieces(getattr(value, each.name))
    elif value is None or isinstance(value, str | int | float):
        yield str(value).encode()
