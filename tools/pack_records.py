"""The runs behind docs/reproduction.md in one file, so that the page can be made again from it.

    python tools/pack_records.py reproduce/pocket docs/reproduction/pocket-records.tar.xz

Models and their vocabularies stay behind: a run that another one starts from is made again where it
is needed. Runs with a large file of their own (matrices of 144 heads) stay behind whole.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

LEFT = {"model.safetensors", "tokenizer.json", "tokenizer_config.json", "config.json"}
LARGE = 2**20


def packed(folder: Path) -> list[Path]:
    """The files that are packed."""
    files = sorted((folder / "studies").glob("*.json"))
    for run in sorted((folder / "runs").iterdir()):
        paths = [path for path in sorted(run.rglob("*")) if path.is_file()]
        records = [path for path in paths if path.name not in LEFT]
        if all(path.stat().st_size < LARGE for path in records):
            files += records
    return files


def main(folder: Path, target: Path) -> None:
    """Write the archive."""
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for path in packed(folder):
            about = archive.gettarinfo(path, f"{folder.name}/{path.relative_to(folder)}")
            about.uid = about.gid = 0
            about.uname = about.gname = ""
            with path.open("rb") as file:
                archive.addfile(about, file)
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
