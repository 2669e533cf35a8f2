"""The records that are packed beside docs/reproduction.md are those that the items look for."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from headcount.runs.run import Run

RECORDS = Path(__file__).parents[2] / "docs" / "reproduction" / "pocket-records.tar.xz"


def test_packed_runs_lie_under_the_keys_of_today() -> None:
    """A new option that is not None where it is unused gave 498 of 619 runs other keys."""
    keys: dict[str, str] = {}
    with tarfile.open(RECORDS) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is None or not member.name.endswith("/record.json"):
                continue
            run = json.loads(file.read())["run"]
            if "/" not in json.dumps(run):  # what names files counts by their content
                keys[Path(member.name).parent.name] = Run.read(run).key
    assert len(keys) > 400
    assert [old for old, new in keys.items() if old != new] == []
