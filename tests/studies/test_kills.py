"""Studies and searches killed at writes and renames, and run again; see benchmarks/coverage."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
from headcount.cli.main import main
from headcount.studies.study import Study
from training.conftest import tiny

PROBES: dict[str, Any] = {
    "name": "probes",
    "retries": 9,
    "runs": {
        "base": {"kind": "probe", "model": "none"},
        "each": {"kind": "probe", "model": {"run": "base"}, "seeds": 2},
        "last": {"kind": "probe", "model": {"run": "each"}, "seeds": 2, "options": {"say": "z"}},
    },
}


def ran(study: Study, executor: str, at: int | None, log: Path) -> int:
    log.unlink(missing_ok=True)
    kill = {} if at is None else {"HEADCOUNT_KILL_AT": str(at), "HEADCOUNT_KILL_LOG": str(log)}
    line = [sys.executable, "-m", "headcount", "study", "run", str(study.planned.path)]
    line += ["--out", str(study.folder), "--executor", executor]
    return subprocess.run(line, env={**os.environ, **kill}, capture_output=True).returncode


def opened(folder: Path) -> Study:
    folder.mkdir()
    path = folder / "study.json"
    path.write_text(json.dumps(PROBES), encoding="utf-8")
    return hc.study(path, folder / "out")


def rows(study: Study) -> list[dict[str, Any]]:
    return [{name: row[name] for name in row if name != "seconds"} for row in study.table().rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], list[str]]:
    """The table of an undisturbed study, and every place where it could have been killed."""
    folder = tmp_path_factory.mktemp("whole")
    study, log = opened(folder / "study"), folder / "places"
    assert ran(study, "serial", 0, log) == 0
    return rows(study), log.read_text().split()


def published(places: list[str]) -> list[int]:
    """Where a result is in its place, and nobody knows yet."""
    return [at for at, place in enumerate(places, 1) if ":publish:" in place][1::2]


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_study_survives_kills_at_any_place(tmp_path: Path, whole: Any, executor: str):
    want, places = whole
    study, log, draw = opened(tmp_path / "study"), tmp_path / "place", random.Random(7)
    killed = 0
    for _ in range(3):
        code = ran(study, executor, draw.randint(1, len(places) // 2), log)
        killed += log.exists()
        assert code in (0, -signal.SIGKILL)
    assert killed > 0
    assert ran(study, executor, None, log) == 0
    assert rows(study) == want
    assert {path.name for path in (study.folder / "runs").iterdir()} == set(study.planned.by_key)
    assert list((study.folder / "claims").iterdir()) == []
    assert list((study.folder / "work").iterdir()) == []


def test_a_result_that_nobody_acknowledged_is_not_made_again(tmp_path: Path, whole: Any):
    want, places = whole
    study, log = opened(tmp_path / "study"), tmp_path / "place"
    assert ran(study, "serial", published(places)[1], log) == -signal.SIGKILL
    assert ":publish:" in log.read_text()
    assert study.status().counts["done"] == 2
    before = {path: path.stat().st_mtime_ns for path in study.folder.glob("runs/*/record.json")}
    assert ran(study, "serial", None, log) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert rows(study) == want
    assert list((study.folder / "claims").iterdir()) == []


def asked_for(folder: Path, bound: str) -> list[str]:
    line = ["search", str(folder / "model"), "--task", "pocket-sentiment", "--limit", "24"]
    line += [
        "--calibration-samples",
        "16",
        "--bootstrap",
        "40",
        "--seeds",
        "1",
        "--baseline",
        "0",
        "--no-bench",
    ]
    return [*line, "--max-drop", bound, "--out", str(folder / "out")]


def answer(folder: Path) -> dict[str, Any]:
    data = json.loads((folder / "out" / "search.json").read_text())
    return {name: value for name, value in data.items() if name not in ("seconds", "sum")}


def test_a_search_over_another_answer_survives_kills(tmp_path: Path, tokenizer: Any):
    """Killed while the earlier answer goes, and when the folder is the new question's."""
    tiny(tokenizer).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    earlier, line = asked_for(tmp_path, "50%"), asked_for(tmp_path, "10%")
    command = [sys.executable, "-m", "headcount", *line, "--overwrite"]
    assert main(line) in (0, 6)
    want = answer(tmp_path)
    assert main([*earlier, "--overwrite"]) in (0, 6)
    log = {"HEADCOUNT_KILL_AT": "0", "HEADCOUNT_KILL_LOG": str(tmp_path / "places")}
    subprocess.run(command, env={**os.environ, **log}, capture_output=True)
    places = (tmp_path / "places").read_text().splitlines()
    under_way = 1 + next(at for at, place in enumerate(places) if ":publish:" in place)
    assert main([*earlier, "--overwrite"]) in (0, 6)
    assert answer(tmp_path) != want
    for at, refused in ((4, True), (under_way, False)):
        environment = {**os.environ, "HEADCOUNT_KILL_AT": str(at)}
        done = subprocess.run(command, env=environment, capture_output=True)
        assert done.returncode == -signal.SIGKILL
        assert not (tmp_path / "out" / "search.json").exists()
        if refused:  # it is still the earlier question's
            assert main(line) == 2
    assert main(line) in (0, 6)
    assert answer(tmp_path) == want
