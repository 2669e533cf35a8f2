"""The benchmarks are too long for the tests, but what they take from headcount must be there."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "benchmarks").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_it_imports_is_there(path: Path) -> None:
    """Of headcount and of the tests: a renamed function shows here, not in an hour's run."""
    missing = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("headcount"):
                    importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("headcount", "models.")
        ):
            module = importlib.import_module(node.module or "")
            missing += [alias.name for alias in node.names if not hasattr(module, alias.name)]
    assert missing == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_it_stands_where_it_says(path: Path) -> None:
    """In one of the three folders, and called by that path in its own words."""
    assert path.parent.name in ("speed", "coverage", "claims")
    about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    named = re.findall(r"python (benchmarks/\S+\.py)", about)
    assert set(named) <= {path.relative_to(ROOT).as_posix()}


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])
def test_the_documents_name_files_that_are_there(document: Path | str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = set(re.findall(r"benchmarks/[\w/]+\.\w+", text))
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_a_quick_run_of_every_speed_benchmark_is_offered() -> None:
    speed = [path for path in FILES if path.parent.name == "speed"]
    assert speed
    assert [path.name for path in speed if "--quick" not in path.read_text(encoding="utf-8")] == []


def loaded(name: str, folder: str = "speed") -> ModuleType:
    """A benchmark as a module."""
    where = ROOT / "benchmarks" / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, where)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_quick_run_of_gates_passes_no_verdict() -> None:
    gates = loaded("gates")
    assert (gates.verdict(9.0, quick=True), gates.verdict(9.0, quick=False)) == (0, 1)


@pytest.mark.parametrize("json", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize(("ratio", "code"), [(1.65, 0), (1.55, 1)])
def test_redundancy_ends_with_1_where_a_figure_is_missed(
    ratio: float, code: int, json: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It printed MISSED and ended with 0, so `make bench` could not say so."""
    redundancy = loaded("redundancy")
    cores = redundancy.CORES
    shares = {f"{names} / forward on {n}": 0.1 for names in ("six", "seven") for n in (1, cores)}
    found = shares | {"js": {"times cdist": 99}, "dcor": {"times dcor": 9999}}
    found |= {f"{cores} threads over 1, {names}": ratio for names in ("six", "seven")}
    monkeypatch.setattr(redundancy, "measure", lambda *_, **__: {"n = 25": found, "n = 128": found})
    monkeypatch.setattr("sys.argv", ["redundancy.py", *json])
    assert redundancy.main() == code


@pytest.mark.parametrize("json", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize(("ratio", "code"), [(9.0, 0), (2.4, 1)])
def test_importance_ends_with_1_where_its_goal_is_missed(
    ratio: float, code: int, json: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    importance = loaded("importance")
    found = {
        "model": "base", "rows": 1, "tokens": 1, "ours_seconds": 1.0, "loop_seconds": ratio,
        "ratio": ratio, "ratio_processor": ratio, "goal": 2.5, "difference": 0.0,
    }  # fmt: skip
    monkeypatch.setattr(importance, "measure", lambda *_: found)
    assert importance.main(json) == code
    assert importance.main(["--quick", *json]) == 0


@pytest.fixture
def intervals(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    found = loaded("intervals", "coverage")
    monkeypatch.setattr(found, "LOSSES", (0.0, 0.05))
    monkeypatch.setattr(found, "ROWS", (8, 60))
    return found


def test_a_quick_run_of_intervals_has_every_metric_and_passes_no_verdict(
    intervals: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert intervals.main(["--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * len(intervals.KINDS)
    assert "| pearson | 8 |  |  |  |  |" in lines  # none is stated


@pytest.mark.parametrize(
    ("name", "count", "code"),
    [("difference", 236, 0), ("difference", 210, 1), ("score", 210, 1), ("false", 30, 1)],
)
def test_intervals_ends_with_1_where_a_bar_is_missed(
    intervals: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, count: int, code: int
) -> None:
    sound = {"stated": 250, "difference": 240, "score": 240, "false": 9} | {name: count}

    def made(metric: str, rows: int, loss: float, simulations: int) -> dict[str, object]:
        return {"metric": metric, "rows": rows, "loss": loss, "simulations": 250} | sound

    monkeypatch.setattr(intervals, "cell", made)
    assert intervals.main(["--json"]) == code
    assert intervals.main(["--quick"]) == 0
