"""`headcount doctor`: does headcount work here, and what does it have to work with?"""

from __future__ import annotations

from headcount.cli.common import Json, emit, warn


def doctor(*, as_json: Json = False) -> int:
    """Look at this installation: versions, devices, extras, and a small self-check.

    Leaves with 0 when the core works, 3 when a package is missing, 1 when something else is wrong.
    """
    from headcount.models.diagnosis import examine
    from headcount.views.tables.doctor import doctor_table

    found = examine()
    emit(found, as_json=as_json, table=doctor_table(found))
    for problem in found["problems"]:
        warn(problem["problem"])
    return max((problem["exit_code"] for problem in found["problems"]), default=0)
