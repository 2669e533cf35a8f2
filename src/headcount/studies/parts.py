"""What a group says beside the parts of a run, checked: conditions, launch, keep, seconds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from headcount.base.files import expanded
from headcount.base.names import did_you_mean
from headcount.models.shipped import is_shipped
from headcount.studies.grid import Axes, Group, axis_named
from headcount.studies.written import StudyFile

LONGEST = 1e9
"""Seconds of a run: thirty years."""


def launch_of(group: Group, path: Sequence[str], written: StudyFile) -> tuple[str, ...]:
    """The command that starts its runs as several processes."""
    value = group.get("launch", [])
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(entry, str) for entry in words):
        written.wrong((*path, "launch"), "launch is a command, or a list of its words.")
        return ()
    return tuple(words)


def keep_of(group: Group, path: Sequence[str], written: StudyFile, usual: str) -> bool:
    """Whether models stay; `usual` is what the study says."""
    value = group.get("keep", usual)
    if value not in ("records", "models"):
        written.wrong((*path, "keep"), f"keep is 'records' or 'models', not {value!r}.")
    return value == "models"


def seconds_of(group: Group, path: Sequence[str], written: StudyFile) -> float | None:
    """How long a run takes, where the group says it."""
    value = group.get("seconds")
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < LONGEST:
        return float(value)
    if value is not None:
        written.wrong((*path, "seconds"), "seconds of a run are a number above 0.")
    return None


def conditions_of(
    group: Group, part: str, axes: Axes, path: Sequence[str], written: StudyFile
) -> list[Group]:
    """Which combinations it leaves out, or sets something for."""
    conditions = group.get(part, [])
    if not isinstance(conditions, list) or not all(
        isinstance(entry, Mapping) for entry in conditions
    ):
        written.wrong((*path, part), f"{part} is a list of conditions.")
        return []
    for at, entry in enumerate(conditions):
        when = entry.get("when", {}) if part == "overrides" else entry
        if not isinstance(when, Mapping):
            where = (*path, part, str(at), "when")
            written.wrong(where, "'when' has axes with their values.")
            continue
        for axis in when:
            if axis_named(axis, axes) is None:
                hint = did_you_mean(axis, axes) or f" It has: {', '.join(axes)}."
                where = (*path, part, str(at))
                written.wrong(where, f"the group has no axis '{axis}'.{hint}")
        if part == "overrides" and not isinstance(entry.get("set"), Mapping):
            written.wrong((*path, part, str(at)), "an override has 'when' and 'set'.")
    if part == "exclude":
        return conditions
    parts = ((entry.get("when", {}), entry.get("set")) for entry in conditions)
    return [
        {"when": when, "set": values}
        for when, values in parts
        if isinstance(when, Mapping) and isinstance(values, Mapping)
    ]


def from_file(parts: Group, folder: Path) -> dict[str, object]:
    """A run with paths as they are meant by a file in this folder."""
    resolved = dict(parts)
    if isinstance(resolved.get("model"), str):
        resolved["model"] = absolute(resolved["model"], folder)
    source = resolved.get("source")
    if isinstance(source, Mapping):
        names = ("data", "train", "dev")
        resolved["source"] = {
            key: _path(value, folder) if key in names and isinstance(value, str) else value
            for key, value in source.items()
        }
    return resolved


def absolute(model: str, folder: Path) -> str:
    """A model as it is meant from this folder: where it lies, or the name of a shipped one."""
    here = os.path.isfile(folder / model / "config.json")
    return model if is_shipped(model) and not here else _path(model, folder)


def _path(text: str, folder: Path) -> str:
    path = folder / expanded(text)
    return os.path.realpath(path) if os.path.exists(path) else text  # it may be no name at all
