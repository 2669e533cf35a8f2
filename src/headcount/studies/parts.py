"""What a group says beside the parts of a run, checked: conditions, launch, keep, seconds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headcount.base.files import expanded
from headcount.base.names import did_you_mean
from headcount.models.shipped import is_shipped
from headcount.studies.grid import axis_named
from headcount.studies.written import StudyFile

Group = Mapping[str, Any]
LONGEST = 1e9
"""Seconds of a run: thirty years."""


def launch_of(group: Group, place: Sequence[str], written: StudyFile) -> tuple[str, ...]:
    """The command that starts its runs as several processes."""
    said = group.get("launch", [])
    words = said.split() if isinstance(said, str) else said
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        written.wrong((*place, "launch"), "launch is a command, or a list of its words.")
        return ()
    return tuple(words)


def keep_of(group: Group, place: Sequence[str], written: StudyFile, usual: str) -> bool:
    """Whether models stay; `usual` is what the study says."""
    said = group.get("keep", usual)
    if said not in ("records", "models"):
        written.wrong((*place, "keep"), f"keep is 'records' or 'models', not {said!r}.")
    return said == "models"


def seconds_of(group: Group, place: Sequence[str], written: StudyFile) -> float | None:
    """How long a run takes, where the group says it."""
    said = group.get("seconds")
    if isinstance(said, int | float) and not isinstance(said, bool) and 0 < said < LONGEST:
        return float(said)
    if said is not None:
        written.wrong((*place, "seconds"), "seconds of a run are a number above 0.")
    return None


def conditions_of(
    group: Group, part: str, axes: Mapping[str, Any], place: Sequence[str], written: StudyFile
) -> list[Any]:
    """Which combinations it leaves out, or sets something for."""
    found = group.get(part, [])
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        written.wrong((*place, part), f"{part} is a list of conditions.")
        return []
    for at, each in enumerate(found):
        when = each.get("when", {}) if part == "overrides" else each
        if not isinstance(when, Mapping):
            where = (*place, part, str(at), "when")
            written.wrong(where, "'when' has axes with their values.")
            continue
        for axis in when:
            if axis_named(axis, axes) is None:
                hint = did_you_mean(axis, axes) or f" It has: {', '.join(axes)}."
                where = (*place, part, str(at))
                written.wrong(where, f"the group has no axis '{axis}'.{hint}")
        if part == "overrides" and not isinstance(each.get("set"), Mapping):
            written.wrong((*place, part, str(at)), "an override has 'when' and 'set'.")
    if part == "exclude":
        return found
    parts = ((each.get("when", {}), each.get("set")) for each in found)
    return [
        {"when": when, "set": values}
        for when, values in parts
        if isinstance(when, Mapping) and isinstance(values, Mapping)
    ]


def from_file(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A run with paths as they are meant by a file in this folder."""
    found = dict(asked)
    if isinstance(found.get("model"), str):
        found["model"] = absolute(found["model"], folder)
    source = found.get("source")
    if isinstance(source, Mapping):
        names = ("data", "train", "dev")
        found["source"] = {
            key: _path(value, folder) if key in names and isinstance(value, str) else value
            for key, value in source.items()
        }
    return found


def absolute(model: str, folder: Path) -> str:
    """A model as it is meant from this folder: where it lies, or the name of a shipped one."""
    here = os.path.isfile(folder / model / "config.json")
    return model if is_shipped(model) and not here else _path(model, folder)


def _path(text: str, folder: Path) -> str:
    path = folder / expanded(text)
    return os.path.realpath(path) if os.path.exists(path) else text  # it may be no name at all
