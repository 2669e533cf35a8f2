"""Kills on purpose."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CODE = "import sys; from headcount.base.files import write_json; write_json(sys.argv[1], {'a': 1})"


@pytest.mark.parametrize(("at", "there"), [("1", False), ("2", True), ("99", True), (None, True)])
def test_a_process_is_killed_at_the_place_that_is_named(tmp_path: Path, at, there):
    path = tmp_path / "a.json"
    env = {**os.environ} | ({} if at is None else {"HEADCOUNT_KILL_AT": at})
    done = subprocess.run([sys.executable, "-c", CODE, str(path)], env=env, check=False)
    assert done.returncode == (-signal.SIGKILL if at in ("1", "2") else 0)
    assert path.exists() is there
    if there:
        assert json.loads(path.read_text()) == {"a": 1}
