"""The rules of the tests: they mirror the source, and every one of them can fail."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "headcount"
TOOLS = TESTS.parent / "tools"
# A command's parts are tested through the command, a study's through its runs.
THROUGH_THEIR_USERS = ("cli", "studies")
WITHOUT_A_TEST = {
    "__main__.py": "two lines that start the command line: test_main.py runs them",
    "exports/run_gguf.py": "a script in a process of its own: test_gguf.py runs it on every file",
    "views/tables/inspect.py": "what tests/cli/test_inspect.py reads from the command",
}
"""Source files that no test mirrors, and why."""
WITHOUT_A_SOURCE = {
    "cluster/test_disk.py": "studies on a disk that is full; make cluster",
    "cluster/test_launch.py": "accelerate launch inside a study; make cluster",
    "cluster/test_ray.py": "studies on a Ray cluster of two nodes; make cluster",
    "cluster/test_slurm.py": "studies as jobs of a real SLURM; make cluster",
    "fuzz/test_fuzz.py": "damaged files for every reader of the house",
    "learned/test_processes.py": "gates in runs that are killed, and in two processes",
    "likeness/test_oracles.py": "the oracles that kernels are held against",
    "models/test_architectures.py": "docs/architectures.md",
    "models/test_linear_path.py": "linear paths: found, saved, loaded, cut again, generating",
    "models/test_zoo.py": "every family through the same gate",
    "page/test_hostile.py": "the page of views/page in a browser: names that would be markup",
    "page/test_large.py": "the same with 1,536 heads",
    "page/test_study.py": "the same, of files that the commands wrote",
    "page/test_views.py": "the same, every view",
    "runs/test_counts.py": "how often one prune derives, loads and encodes",
    "runs/test_resume.py": "runs that were killed, done before, or are under way elsewhere",
    "test_benchmarks.py": "benchmarks/",
    "test_docstrings.py": "the examples in the docstrings",
    "test_docs.py": "README.md and docs/: every block is run",
    "test_examples.py": "examples/",
    "test_contributing.py": "docs/design.md, where something new goes",
    "test_house.py": "the rules of the house",
    "test_public.py": "the types of what `import headcount` gives",
    "test_results.py": "what all results have in common",
    "test_tests.py": "the rules of the tests",
    "test_table.py": "the first table of docs/real.md",
    "test_twins.py": "commands and their twins in Python",
}
"""Tests that mirror no source file, and what they test."""


def mirrored(path: Path) -> Path:
    """Where the tests of a source file are; those of a package are named after its folder."""
    if path.name == "__init__.py" and path.parent.name:
        path = path.parent.with_suffix(".py")
    return path.with_name(f"test_{path.name}")


def test_every_source_file_has_its_tests() -> None:
    files = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")]
    bare = {
        path.as_posix()
        for path in files
        if path.name != "__init__.py"
        and path.parts[0] not in THROUGH_THEIR_USERS
        and not (TESTS / mirrored(path)).is_file()
    }
    assert bare == set(WITHOUT_A_TEST)


def test_every_test_file_has_its_source() -> None:
    known = {mirrored(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py")}
    known |= {mirrored(path.relative_to(TOOLS.parent)) for path in TOOLS.rglob("*.py")}
    strangers = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("test_*.py")
        if path.relative_to(TESTS) not in known
        and path.relative_to(TESTS).parts[0] not in THROUGH_THEIR_USERS
    }
    assert strangers == set(WITHOUT_A_SOURCE)


CHECKS = {"raises", "warns", "fail"}


@dataclass(frozen=True)
class Function:
    """What the rules ask of a function: what it asserts and calls, and where it may leave."""

    name: str
    asserts: bool
    calls: frozenset[str]
    early: bool
    """Whether it may return before it asserts anything."""

    def can_fail(self, helpers: set[str]) -> bool:
        """Whether it asserts, expects an error or a warning, or calls what does."""
        called = any(name.startswith("assert_") for name in self.calls)
        return self.asserts or called or bool(self.calls & (CHECKS | helpers))


def functions(text: str) -> list[Function]:
    nodes = ast.walk(ast.parse(text))
    return [about(node) for node in nodes if isinstance(node, ast.FunctionDef)]


def about(function: ast.FunctionDef) -> Function:
    nodes = list(ast.walk(function))
    asserts = [node.lineno for node in nodes if isinstance(node, ast.Assert)]
    first = min(asserts, default=function.end_lineno or 0)
    returns = [node for node in nodes if isinstance(node, ast.Return) and node.value is None]
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    return Function(
        name=function.name,
        asserts=bool(asserts),
        calls=frozenset(getattr(each, "attr", getattr(each, "id", "")) for each in calls),
        early=any(node.lineno < first for node in returns),
    )


def asserting_helpers(every: list[Function]) -> set[str]:
    """Functions beside the tests that assert, or call one that does."""
    helpers = [function for function in every if not function.name.startswith("test_")]
    known: set[str] = set()
    while True:
        more = {function.name for function in helpers if function.can_fail(known)}
        if more <= known:
            return known
        known |= more


def idle(every: list[Function], helpers: set[str]) -> list[str]:
    """Tests that nothing could fail, and tests that may return before they assert anything."""
    tests = [function for function in every if function.name.startswith("test_")]
    return [test.name for test in tests if test.early or not test.can_fail(helpers)]


def test_every_test_can_fail() -> None:
    files = {path: functions(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    helpers = asserting_helpers([function for each in files.values() for function in each])
    found = {path.name: idle(each, helpers) for path, each in files.items()}
    assert {name: tests for name, tests in found.items() if tests} == {}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("def test_a():\n  assert 1", False),
        ("def test_a():\n  run()", True),
        ("def test_a():\n  with pytest.raises(ValueError):\n    run()", False),
        ("def test_a():\n  np.testing.assert_allclose(1, 2)", False),
        ("def helper():\n  assert 1\ndef test_a():\n  helper()", False),
        ("def test_a():\n  if not can():\n    return\n  assert 1", True),
    ],
)
def test_the_rule_sees_what_it_should(text: str, named: bool) -> None:
    every = functions(text)
    assert bool(idle(every, asserting_helpers(every))) is named
