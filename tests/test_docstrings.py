"""The examples in the docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.name != "__main__.py"
}
WITH_EXAMPLES = [
    name for name, path in MODULES.items() if ">>>" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0, capsys.readouterr().out


def test_examples_are_looked_for_where_they_are() -> None:
    assert len(WITH_EXAMPLES) > 50
    assert "headcount.heads.counts" in WITH_EXAMPLES


def test_every_module_can_be_imported() -> None:
    assert [name for name in MODULES if importlib.import_module(name).__name__ != name] == []
