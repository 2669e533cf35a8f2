"""A study on a disk that is full, and goes on once there is room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from cluster.conftest import clean, command, finished, opened, rows
from cluster.tiny import data_in, tiny


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    """A disk of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_full_disk_is_a_named_failure_and_the_study_goes_on_later(
    tmp_path: Path, disk: Path, executor: str
):
    data = tiny(data_in(tmp_path / "data"))
    data["runs"] = {name: data["runs"][name] for name in ("base", "felt", "trained", "probes")}
    study = opened(disk / "study", data)
    (disk / "in the way").write_bytes(bytes(3_500_000))
    code, out, err = finished(command(study, "run", "--executor", executor), 300)
    assert (code, out) == (1, ""), err
    assert "No space left on device" in err
    assert "The study stops here: what is done is kept." in err
    counts = study.status().counts
    assert counts["failed"] == counts["stale"] == counts["running"] == 0
    assert study.table().damaged == []
    subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
    code, _, err = finished(command(study, "run", "--executor", executor), 300)
    assert code == 0, err
    assert clean(study)
    if executor == "serial":
        there = opened(tmp_path / "there", data)
        there.run()
        assert rows(there) == rows(study)
