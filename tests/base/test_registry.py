from __future__ import annotations

import sys

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
