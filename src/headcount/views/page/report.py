"""`hc.report`: one page of what was found, from the files that runs left."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headcount.base.errors import NotFoundError, UsageError
from headcount.base.files import as_path, expanded, whole
from headcount.base.text import line


@dataclass(frozen=True, kw_only=True)
class Report:
    """A page that was written."""

    out: Path
    size: int
    """Bytes of the file."""
    answers: tuple[str, ...]
    """The answer in one sentence, for each model and task."""
    subjects: tuple[str, ...]
    files: int
    """Files that it was made from."""
    skipped: tuple[tuple[str, str], ...]
    """(file, why) of those that could not be read."""

    def __repr__(self) -> str:
        return line(f"Report({self.out}; {', '.join(self.subjects)}; {self.files} files)")

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {
            "out": str(self.out),
            "bytes": self.size,
            "subjects": [
                {"name": name, "answer": answer}
                for name, answer in zip(self.subjects, self.answers, strict=True)
            ],
            "files": self.files,
            "skipped": [{"file": name, "why": why} for name, why in self.skipped],
        }


def report(
    *paths: str | os.PathLike[str],
    out: str | os.PathLike[str] = Path("report.html"),
    note: Callable[[str], object] = lambda text: None,
) -> Report:
    """Write one self-contained HTML page of the records, masks, matrices and traces in folders.

    `paths` are files or folders of runs, studies and searches, which are looked through. Files
    that cannot be read are left out, and `note` is called with a sentence about each.
    """
    from headcount.views.page.build import build
    from headcount.views.page.gather import gather
    from headcount.views.page.walk import walk

    if not paths:
        raise UsageError("Name at least one folder or file to make a page of.")
    target = _target(out)
    paths = tuple(as_path(path, "file or folder") for path in paths)
    found = walk(paths)
    if not found.items:
        for name, why in found.skipped:
            note(f"{name} was left out: {why}")
        named = ", ".join(str(path) for path in paths)
        raise NotFoundError(f"No record, mask, matrix or trace of headcount was found in {named}.")
    data = gather(found)
    skipped = tuple(dict.fromkeys(found.skipped))
    for name, why in skipped:
        note(why if name in why else f"{name}: {why}")
    page = build(data, title=_title(data))
    with whole(target) as partial:
        partial.write_text(page, encoding="utf-8")
    return Report(
        out=target,
        size=len(page.encode()),
        answers=tuple(subject["answer"]["sentence"] for subject in data["subjects"]),
        subjects=tuple(subject["name"] for subject in data["subjects"]),
        files=len(found.items),
        skipped=skipped,
    )


def _title(data: dict[str, Any]) -> str:
    names = [subject["name"] for subject in data["subjects"]]
    return f"{names[0]} · heads" if len(names) == 1 else "Heads"


def _target(out: str | os.PathLike[str]) -> Path:
    path = expanded(out)
    if path.is_dir():
        raise UsageError(f"{path} is a folder; the page is one file, such as {path}/report.html.")
    return path
