from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from importlib.metadata import version
from typing import Any

import pytest

import headcount
from headcount.models import diagnosis

Cli = Callable[..., Any]


def test_it_finds_what_is_there(cli: Cli) -> None:
    ran = cli("doctor", "--json")
    found = json.loads(ran.out)
    assert ran.code == 0
    assert ran.err == ""
    assert found["problems"] == []
    assert found["headcount"] == headcount.__version__
    assert found["packages"]["torch"] == version("torch")
    assert found["packages"]["scikit-learn"] == version("scikit-learn")
    assert found["devices"][-1]["device"] == "cpu"
    assert found["memory"]["total"] > found["memory"]["available"] > 0
    assert found["threads"]["torch"] >= 1
    assert found["attention_interface"] is True
    assert found["offline"] is True
    assert found["self_check"]["ok"] is True
    assert found["extras"]["report"]["installed"] is True


def test_the_table_has_a_line_for_each(cli: Cli) -> None:
    ran = cli("doctor")
    assert ran.code == 0
    for word in ("torch", "threads", "memory", "cpu", "extra: onnx", "self-check", "offline"):
        assert word in ran.out


def test_offline_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    for value, offline in [("1", True), ("true", True), ("0", False), ("", False)]:
        monkeypatch.setenv("HF_HUB_OFFLINE", value)
        assert diagnosis.offline() is offline


def test_a_missing_package_is_3_and_the_command(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setitem(diagnosis.CORE, "no-such-package", "no_such_module")
    ran = cli("doctor", "--json")
    assert ran.code == 3
    assert ran.err == "headcount: missing packages: pip install no-such-package\n"
    assert json.loads(ran.out)["packages"]["no-such-package"] is None
    table = cli("doctor")
    assert table.code == 3
    assert "missing" in table.out


def test_a_missing_extra_is_no_problem_but_shows_the_command(
    monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    from headcount.base.extras import Extra

    extra = Extra(name="moon", summary="Far away.", modules=("no_such_module", "json"))
    monkeypatch.setattr(diagnosis, "EXTRAS", (extra,))
    monkeypatch.setattr(diagnosis, "self_check", lambda: {"ok": True, "detail": ""})
    ran = cli("doctor")
    assert ran.code == 0
    assert "pip install 'headcount[moon]'" in ran.out
    assert diagnosis.extras()["moon"]["missing"] == ["no_such_module"]


def test_the_self_check_sees_a_removal_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from headcount.models import remove as room

    right = room.remove
    monkeypatch.setattr(headcount, "remove", lambda model, mask: right(model, ~mask), raising=False)
    check = diagnosis.self_check()
    assert check["ok"] is False
    assert "differ by" in check["detail"]


def test_the_self_check_sees_gates_that_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headcount, "gate", lambda model, mask: nullcontext(), raising=False)
    monkeypatch.setattr(headcount, "remove", lambda model, mask: model, raising=False)
    assert diagnosis.self_check()["ok"] is False


def test_a_self_check_that_breaks_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(model: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(headcount, "layout", broken, raising=False)
    assert diagnosis.self_check() == {"ok": False, "detail": "RuntimeError: no such thing"}


def test_a_failed_self_check_is_1(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setattr(diagnosis, "self_check", lambda: {"ok": False, "detail": "off by 3"})
    ran = cli("doctor")
    assert ran.code == 1
    assert ran.err == "headcount: self-check: off by 3\n"
    assert "FAILED: off by 3" in ran.out


def test_an_old_transformers_is_1(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setattr(diagnosis, "attention_interface", lambda: False)
    ran = cli("doctor")
    assert ran.code == 1
    assert "AttentionInterface" in ran.err


def test_a_package_that_does_not_import_is_1(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    def broken() -> None:
        raise OSError("libtorch.so: cannot open shared object file")

    monkeypatch.setattr(diagnosis, "threads", broken)
    ran = cli("doctor")
    assert ran.code == 1
    assert "libtorch.so" in ran.err
