from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headcount.base.errors import UsageError
from headcount.base.registry import Registry


@pytest.fixture
def registry() -> Registry:
    registry = Registry("method")
    registry.add("late", "this.is.not.there:anything", "not imported until it is used")
    registry.add("joined", "string:capwords", "from the standard library")
    registry.add("here", len, "a callable itself")
    return registry


def test_listing_imports_nothing(registry: Registry) -> None:
    assert [entry.name for entry in registry] == ["late", "joined", "here"]
    assert next(iter(registry)).summary == "not imported until it is used"
    assert len(registry) == 3
    assert "late" in registry
    assert "nope" not in registry
    assert "this" not in sys.modules


def test_lookup_imports(registry: Registry) -> None:
    assert registry["joined"]("a b") == "A B"
    assert registry["here"]([1, 2]) == 2
    with pytest.raises(ModuleNotFoundError):
        registry["late"]


def test_an_unknown_name_is_answered_with_the_nearest(registry: Registry) -> None:
    with pytest.raises(UsageError, match=r"no method 'join'.*Did you mean 'joined'\?.*Known: here"):
        registry["join"]


def test_a_name_is_taken_once(registry: Registry) -> None:
    with pytest.raises(UsageError, match="'here' is registered already"):
        registry.add("here", max, "again")
    assert registry["here"] is len


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An installed package with a plugin that works and one that does not."""
    about = tmp_path / "headcount_extra-0.3.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: headcount-extra\nVersion: 0.3\nSummary: More of them.\n"
    )
    (about / "entry_points.txt").write_text(
        "[headcount.tests]\n"
        "good = headcount_extra_good:Good\n"
        "bad = headcount_extra_bad:Bad\n"
        "here = headcount_extra_good:Good\n"
    )
    (tmp_path / "headcount_extra_good.py").write_text("class Good:\n    pass\n")
    (tmp_path / "headcount_extra_bad.py").write_text("import not_installed_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("headcount_extra_good", None)


@pytest.fixture
def open_registry(package: Path) -> Registry:
    registry = Registry("method", plugins="headcount.tests")
    registry.add("here", len, "a callable itself")
    return registry


def test_packages_are_listed_from_their_metadata(
    open_registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    assert [entry.name for entry in open_registry] == ["here", "good", "bad"]
    assert open_registry.require("good").summary == "More of them."
    assert open_registry.require("good").package == "headcount-extra 0.3"
    assert len(open_registry) == 3
    assert "good" in open_registry
    assert "headcount_extra_good" not in sys.modules
    assert open_registry["here"] is len  # what is here already stays
    assert caplog.messages == [
        "The package headcount-extra 0.3 has a method 'here', and there is one of that name "
        "already: it is left out."
    ]


def test_a_packages_thing_is_imported_when_it_is_used(open_registry: Registry) -> None:
    good = open_registry["good"]
    assert good.__name__ == "Good"
    assert open_registry.name_of(good) == "good"
    with pytest.raises(UsageError, match="Good is no method that is registered"):
        open_registry.name_of(type("Good", (), {}))  # only called alike


def test_a_broken_package_is_named_and_breaks_nothing_else(
    open_registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(UsageError, match=r"'bad' of the package headcount-extra 0.3 .*No module"):
        open_registry["bad"]
    caplog.clear()
    assert list(open_registry.loaded()) == ["here", "good"]
    assert list(open_registry.loaded()) == ["here", "good"]
    assert len(caplog.messages) == 1  # said once
    assert "headcount-extra 0.3 cannot be loaded: ModuleNotFoundError" in caplog.messages[0]
    assert list(open_registry.loaded(packages=False)) == ["here"]
