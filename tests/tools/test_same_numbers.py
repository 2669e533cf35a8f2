from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.same_numbers import COMMANDS, compare, floats


def test_times_are_no_numbers_of_a_result() -> None:
    data = {"score": 0.5, "seconds": 1.5, "n": 3, "rows": [{"low": 0.25, "timing": {"ms": 2.5}}]}
    assert list(floats(data)) == [(".score", 0.5), (".rows[0].low", 0.25)]


def test_a_number_may_move_and_may_not_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, data in {"old": {"a": 0.5}, "moved": {"b": {"c": 0.5}}, "new": {"a": 0.25}}.items():
        (tmp_path / folder).mkdir()
        for name in COMMANDS:
            (tmp_path / folder / f"{name}.json").write_text(json.dumps(data))
    assert compare(tmp_path / "old", tmp_path / "moved") == 0
    assert compare(tmp_path / "old", tmp_path / "new") == 1
    assert ".a = 0.5" in capsys.readouterr().out
