"""The runs behind the papers' tables and figures, at three scales: one study file each.

    plan = read_scale("pocket", items)          # the groups that these items are drawn from
    plan = read_scale("small", items, DataPaths(data="../shared/data", weights="weights"))

`pocket` needs nothing, `small` real weights and data in folders, `paper` the papers' own models
and data sets. Groups have the same names at every scale.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import expanded
from headcount.base.names import require
from headcount.studies.groups import read_plan
from headcount.studies.plan import Plan
from headcount.studies.written import StudyFile, read_written

Scale = Literal["pocket", "small", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
FOLDER = Path(__file__).parent / "data" / "scales"
ENVIRONMENT = {"data": "HEADCOUNT_DATA", "weights": "HEADCOUNT_WEIGHTS"}


@dataclass(frozen=True, kw_only=True)
class DataPaths:
    """Where real data and weights lie, for the scales that need them."""

    data: Path | None = None
    """Folder with glue/, wikitext-2/ and multi30k/; HEADCOUNT_DATA when left out."""
    weights: Path | None = None
    """Folder with a model folder for each name of the scale; HEADCOUNT_WEIGHTS when left out."""

    def missing(self, scale: str) -> list[str]:
        """The folders that a scale needs and nobody has named."""
        written = str(read_written_scale(scale).data)
        names = [name for name in ENVIRONMENT if f"{{{name}}}" in written]
        return [name for name in names if self.of(name) is None]

    def of(self, name: str) -> Path | None:
        """The folder of this name, as it was given or is in the environment."""
        given = getattr(self, name) or os.environ.get(ENVIRONMENT[name])
        return None if given is None else expanded(given).absolute()


@cache
def read_written_scale(scale: str) -> StudyFile:
    """The study file of a scale."""
    require("scale", scale, SCALES)
    return read_written(FOLDER / f"{scale}.yaml")


def groups_of(scale: str) -> tuple[str, ...]:
    """The names of all groups of runs at a scale."""
    return tuple(read_written_scale(scale).data["runs"])


def read_scale(
    scale: str,
    groups: Iterable[str],
    paths: DataPaths | None = None,
    *,
    name: str | None = None,
    elsewhere: bool = False,
) -> Plan:
    """The plan of some groups of a scale, with those that they start from.

    `name` is what the study is called, in place of the scale. `elsewhere` plans for another
    machine: models and data need not be here.
    """
    written = read_written_scale(scale)
    runs = written.data["runs"]
    wanted = {needed for group in groups for needed in with_inputs(scale, group)}
    if not wanted:
        raise UsageError(f"Nothing that was asked for has runs at the scale '{scale}'.")
    data = dict(written.data) | {
        "name": name or scale,
        "runs": {name: runs[name] for name in runs if name in wanted},
    }
    filled = _filled(data, paths or DataPaths(), scale, elsewhere)
    # the file is read once for all plans
    return read_plan(replace(written, data=filled, mistakes={}), elsewhere=elsewhere)


def with_inputs(scale: str, name: str) -> Iterator[str]:
    """A group of a scale and all groups that its runs start from, those first."""
    runs = read_written_scale(scale).data["runs"]
    if name not in runs:
        return
    for group in _references(runs[name]):
        yield from with_inputs(scale, group)
    yield name


def _references(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for word in ("run", "each", "best"):
            if isinstance(value.get(word), str):
                yield value[word]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _filled(value: object, paths: DataPaths, scale: str, elsewhere: bool) -> object:
    """A study file with folders in place of {data}, {weights} and {configs}."""
    if isinstance(value, Mapping):
        return {key: _filled(item, paths, scale, elsewhere) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, paths, scale, elsewhere) for item in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    value = value.replace("{configs}", str(FOLDER / "configs"))
    for name in (field.name for field in fields(DataPaths)):
        if f"{{{name}}}" not in value:
            continue
        folder = paths.of(name)
        if folder is None and not elsewhere:
            raise NotFoundError(
                f"The scale '{scale}' needs {value.replace(f'{{{name}}}/', '')} in a folder of "
                f"{name}: pass --{name} DIR, or set {ENVIRONMENT[name]}."
            )
        value = value.replace(f"{{{name}}}", str(folder or f"/{name}"))
        if not elsewhere and not Path(value).exists():
            raise NotFoundError(f"The scale '{scale}' needs {value}, and it is not there.")
    return value
