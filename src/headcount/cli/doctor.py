"""`headcount doctor`: does headcount work here, and with what?"""

from __future__ import annotations

from headcount.cli.common import Json, emit, warn


def doctor(*, as_json: Json = False) -> int:
    """Check this installation: versions, devices, extras, and a small self-check.

    Exit code 0: the core works; 3: a package is missing; 1: something else is wrong.
    """
    from headcount.models.diagnosis import examine
    from headcount.views.tables.doctor import doctor_table

    diagnosis = examine()
    emit(diagnosis, as_json=as_json, table=doctor_table(diagnosis))
    for problem in diagnosis["problems"]:
        warn(problem["problem"])
    return max((problem["exit_code"] for problem in diagnosis["problems"]), default=0)
