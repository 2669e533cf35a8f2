"""What people would copy from examples/ runs as it is, offline, in an empty folder."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from headcount.tasks.generated import SIZES

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder; the made tasks have fewer rows here, which no example counts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(SIZES, "train", 400)
    monkeypatch.setitem(SIZES, "dev", 200)
    return tmp_path


def start(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_how_many_heads(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    start("how_many_heads.py", monkeypatch)
    assert "pocket needs " in capsys.readouterr().out
    assert (here / "search" / "model" / "model.safetensors").is_file()
    assert (here / "report.html").is_file()


def test_prune_a_classifier(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    start("prune_a_classifier.py", monkeypatch)
    assert " → " in capsys.readouterr().out
    assert (here / "half" / "tokenizer.json").is_file()


def test_compare_methods(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    start("compare_methods.py", monkeypatch)
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()] == ["random", "importance", "surgeon"]
    assert (here / "report.html").is_file()


def test_the_notebook(here: Path) -> None:
    """Cell by cell in plain Python; what a cell ends with is what the notebook would show."""
    cells = json.loads((EXAMPLES / "look_at_heads.ipynb").read_text(encoding="utf-8"))["cells"]
    space: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "commit it without outputs"
            exec("".join(cell["source"]), space)
    assert len(space["mask"]) == 24
    assert space["maps"] is not None


def test_every_example_has_its_test() -> None:
    tested = Path(__file__).read_text(encoding="utf-8")
    names = [path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".ipynb"}]
    assert sorted(names) == sorted({name for name in names if name in tested})
    assert len(names) == 4
