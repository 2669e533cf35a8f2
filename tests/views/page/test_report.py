"""hc.report: one file, whole or not at all, and a sentence for whatever was left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headcount.base.errors import NotFoundError, UsageError
from headcount.heads import Layout
from headcount.views.page.report import report
from page.made import study

LAYOUT = Layout.of(encoder=[2, 2])


def test_a_page_is_written_and_summed_up(files: Path, tmp_path: Path) -> None:
    page = report(files, out=tmp_path / "new" / "page.html")
    assert page.out.stat().st_size == page.size
    assert page.subjects == ("model on task",)
    assert page.sentences == ("6 of the 12 heads of model can go.",)
    assert (page.files, page.skipped) == (33, ())
    assert page.to_json()["subjects"][0]["sentence"] == page.sentences[0]
    assert repr(page).startswith("Report(")


def test_the_same_files_make_the_same_page(files: Path, tmp_path: Path) -> None:
    one, other = (report(files, out=tmp_path / name).out for name in ("a.html", "b.html"))
    assert one.read_bytes() == other.read_bytes()


def test_what_was_left_out_is_told(tmp_path: Path) -> None:
    study(tmp_path, LAYOUT, ratios=(0.5,), seeds=1)
    (tmp_path / "bench.json").write_text("{")
    notes: list[str] = []
    page = report(tmp_path, out=tmp_path / "page.html", note=notes.append)
    assert len(notes) == len(page.skipped) == 1
    assert str(tmp_path / "bench.json") in notes[0]


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least one folder"):
        report()
    with pytest.raises(NotFoundError, match="No record, mask, matrix or trace"):
        report(tmp_path, out=tmp_path / "page.html")
    study(tmp_path / "files", LAYOUT, ratios=(0.5,), seeds=1)
    with pytest.raises(UsageError, match="is a folder"):
        report(tmp_path / "files", out=tmp_path)
    assert not list(tmp_path.glob("*.html"))


def test_no_torch_is_imported(files: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom headcount.views.page.report import report\n"
        f"report({str(files)!r}, out={str(tmp_path / 'page.html')!r})\n"
        "print(sorted({'torch', 'transformers', 'datasets', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
