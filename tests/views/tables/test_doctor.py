from __future__ import annotations

from typing import Any

from headcount.views.tables.doctor import doctor_table

FOUND: dict[str, Any] = {
    "headcount": "9.9",
    "python": "3.12",
    "platform": "Moon",
    "packages": {"torch": "2", "numba": None},
    "memory": {"available": 2**30, "total": 3 * 2**30},
    "extras": {"report": {"installed": True}, "mt": {"installed": False, "install": "pip x"}},
    "offline": False,
}


def test_what_is_missing_is_said_with_its_command(shown: Any) -> None:
    lines = {tuple(line.split(maxsplit=1)) for line in shown(doctor_table(FOUND)).splitlines()}
    assert ("numba", "missing") in lines
    assert ("memory", "1.0 GiB free of 3.0 GiB") in lines
    assert any(each and each[0] == "extra:" and each[-1].endswith("pip x") for each in lines)
    assert ("hub", "allowed") in lines


def test_a_failed_check_is_shouted(shown: Any) -> None:
    check = {"ok": False, "detail": "off by 3"}
    devices = [{"device": "cuda:0", "name": "Big", "memory": 2**31}]
    told = shown(doctor_table(FOUND | {"self_check": check, "devices": devices}))
    assert "FAILED: off by 3" in told
    assert "cuda:0 (Big, 2.0 GiB)" in told
