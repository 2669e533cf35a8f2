"""A folder with one of everything that a page can show, as found and put together."""

from __future__ import annotations

from pathlib import Path

import pytest

from headcount.heads import Layout
from headcount.views.page.subjects import PageSubject, subjects
from headcount.views.page.walk import ReportInput, walk
from page.made import filed, study

LAYOUT = Layout.of(encoder=[4, 4, 4])


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return study(tmp_path_factory.mktemp("files"), LAYOUT)


@pytest.fixture
def report(files: Path) -> ReportInput:
    return walk([files])


@pytest.fixture
def subject(report: ReportInput) -> PageSubject:
    (only,) = subjects(report)
    return only


@pytest.fixture(scope="session")
def study_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filed(tmp_path_factory.mktemp("filed") / "methods", LAYOUT)
