"""A browser for all tests here, and pages to open in it.

Where there is no Chromium nothing here is collected, and the end of the run says so plainly
(`tests/conftest.py`): a machine without one can still run all other tests. `make browser` installs
one and runs these.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headcount.heads import Layout
from headcount.views.page.report import report
from page.chromium import PROGRAM, Browser, Page
from page.made import study

collect_ignore_glob = ["test_*.py"] if PROGRAM is None else []

LAYOUT = Layout.of(encoder=[6, 6, 6, 6])


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one of everything."""
    return study(tmp_path_factory.mktemp("study"), LAYOUT)


@pytest.fixture(scope="session")
def html(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(files, out=tmp_path_factory.mktemp("page") / "report.html").out


@pytest.fixture(scope="module")
def page(browser: Browser, html: Path) -> Iterator[Page]:
    """The page, open; at its end it complained of nothing and asked nobody."""
    opened = browser.open(html)
    opened.wait("document.querySelectorAll('.headgrid').length > 0")
    yield opened
    assert opened.complaints() == []
    assert opened.requests() == []
    opened.close()
