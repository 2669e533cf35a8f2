"""Files that are rows: listed in order, named by content, refused when they are no files."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.tasks import media


def test_files_are_listed_by_name_in_all_folders(tmp_path: Path) -> None:
    for name in ("b.png", "a/c.PNG", "a/.hidden.png", "a/text.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    found = media.files_in(tmp_path, media.IMAGES, "image")
    assert [path.name for path in found] == ["c.PNG", "b.png"]
    with pytest.raises(NotFoundError, match="There is no sound in"):
        media.files_in(tmp_path, (".wav",), "sound")


def test_equal_files_have_one_digest(tmp_path: Path) -> None:
    for name, text in {"a": "x", "b": "x", "c": "y"}.items():
        (tmp_path / name).write_text(text)
    one, same, other = media.digests(tmp_path / name for name in "abc")
    assert one == same != other


def test_what_is_no_row_is_refused(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="is empty"):
        media.read_bytes(tmp_path / "empty")
    with pytest.raises(NotFoundError, match="There is no file"):
        media.read_bytes(tmp_path / "none")
    (tmp_path / "large").write_text("12345")
    monkeypatch.setattr(media, "LARGEST", 4)
    with pytest.raises(UsageError, match="5 bytes, more than 4"):
        media.read_bytes(tmp_path / "large")


def test_a_name_too_long_for_a_file_is_that_of_none(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="row 1: there is no file"):
        media.files_of(tmp_path / "rows.csv", ["9" * 5000])
