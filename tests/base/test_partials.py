from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headcount.base.files import whole, whole_folder

KILLED = """
import os, signal, sys
from pathlib import Path
from headcount.base.files import whole, whole_folder
target = Path(sys.argv[1])
with (whole_folder if sys.argv[2] == "folder" else whole)(target) as partial:
    (partial / "x" if sys.argv[2] == "folder" else partial).write_text("half")
    if sys.argv[3] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    print("writing", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize(("kind", "name"), [("file", "a.svg"), ("folder", "a.b")])
def test_what_a_killed_process_left_is_swept_and_what_another_writes_is_not(
    tmp_path: Path, kind: str, name: str
) -> None:
    target = tmp_path / name
    line = [sys.executable, "-c", KILLED, str(target), kind]
    assert subprocess.run([*line, "kill"], check=False).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".a.")
    strange = tmp_path / ".a.download.partial"
    strange.write_text("somebody else's")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*line, "write"], **pipes) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "writing\n"
        assert not left.exists()
        with (whole if kind == "file" else whole_folder)(tmp_path / name) as partial:
            beside = {path for path in tmp_path.iterdir() if path not in (partial, strange)}
            assert len(beside) == 1, "the other one's, which is alive"
            (partial if kind == "file" else partial / "x").write_text("whole")
        other.communicate("go on\n" if kind == "file" else "")
    assert sorted(tmp_path.iterdir()) == [strange, target]
