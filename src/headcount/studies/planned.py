"""A study file becomes runs: every one a value, with those it starts from inside.

    plan = read_plan("methods.yaml")
    plan.cells[0].run, plan.cells[0].axes       # Run(...), {"method": "random", "seed": 0}

Nothing is imported, opened or computed for it: what cannot be is refused here, all at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headcount.base.errors import UsageError
from headcount.base.names import did_you_mean
from headcount.base.options import read
from headcount.studies.groups import Groups
from headcount.studies.plan import Plan, Settings, require_name
from headcount.studies.written import StudyFile, read_written


def read_plan(
    path: str | Path | Mapping[str, Any] | StudyFile, *, elsewhere: bool = False, many: bool = False
) -> Plan:
    """The plan of a study file, or of the same as a mapping; all mistakes are told at once.

    `elsewhere` plans for another machine: models need not be found from here. `many` allows over
    100,000 runs.
    """
    if isinstance(path, Mapping):
        written = StudyFile(path=Path("study"), data=dict(path))
    else:
        written = path if isinstance(path, StudyFile) else read_written(path)
    data = written.data
    known = ("defaults", "runs", *Settings.__dataclass_fields__)
    for name in data:
        if name not in known:
            written.wrong((name,), f"a study has no '{name}'.{did_you_mean(name, known)}")
    settings = Settings()
    try:
        values = {name: data[name] for name in Settings.__dataclass_fields__ if name in data}
        settings = read(Settings, values, "study")
        require_name(settings.name or written.path.stem)
    except UsageError as error:
        written.note((), error)
    groups = data.get("runs")
    if not isinstance(groups, Mapping) or not groups:
        written.wrong(("runs",), "a study has runs: groups by name.")
        groups = {}
    if not isinstance(data.get("defaults", {}), Mapping):
        written.wrong(("defaults",), "defaults are parts of a run, by name.")
        data["defaults"] = {}
    builder = Groups(written, settings, groups, elsewhere, many)
    cells = [cell for name in groups for cell in builder.build(name)]
    written.refuse()
    if settings.out is not None:
        settings = replace(settings, out=written.path.parent / settings.out)
    return Plan(path=written.path, settings=settings, cells=cells, data=data)
