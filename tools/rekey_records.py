"""Packed records in the present form of a run: after a change of names, the same under new keys.

    python tools/rekey_records.py docs/reproduction/pocket-records.tar.xz looking=calibration …

A run is named by a key made of all that it asks, so a renamed option renames every folder. Each
word OLD=NEW renames a key of the run's plain form, wherever it stands; the models and data that a
run names must be where they were, as they count by content. Every record and study gets
the present header; without words, nothing else changes.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headcount.base.header import header
from headcount.runs.run import Run
from tools.pack_records import main as pack


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A nest with other names for some of its keys, dotted ones included."""
    if isinstance(value, list):
        return [renamed(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        ".".join(names.get(part, part) for part in key.split(".")): renamed(item, names)
        for key, item in value.items()
    }


def main(archive: Path, names: Mapping[str, str]) -> None:
    """Rewrite an archive in place."""
    with tempfile.TemporaryDirectory() as work:
        with tarfile.open(archive) as packed:
            packed.extractall(work, filter="data")
        folder = next(Path(work).iterdir())
        keys = {}
        for path in sorted((folder / "runs").iterdir()):
            record = json.loads((path / "record.json").read_text(encoding="utf-8"))
            record = header(record["kind"]) | {**record, **header(record["kind"])}
            record["run"] = renamed(record["run"], names)
            if names:
                keys[path.name] = Run.read(record["run"], path.name).key
            _write(path / "record.json", record)
        for old, new in keys.items():
            (folder / "runs" / old).rename(folder / "runs" / f"new-{new}")
        for path in (folder / "runs").iterdir():
            path.rename(path.with_name(path.name.removeprefix("new-")))
        for path in (folder / "studies").glob("*.json"):
            study = json.loads(path.read_text(encoding="utf-8"))
            study["asked"] = renamed(study["asked"], names)
            study["runs"] = sorted(keys.get(key, key) for key in study["runs"])
            _write(path, header("plan") | study)
        pack(folder, archive)
    print(f"{sum(old != new for old, new in keys.items())} of {len(keys)} runs have another key")


def _write(path: Path, data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), dict(word.split("=") for word in sys.argv[2:]))
