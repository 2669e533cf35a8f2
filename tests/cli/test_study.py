"""`headcount study`: what it prints, refuses and leaves with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headcount.cli.study as told
from cli.test_failures import full_after

Cli = Callable[..., Any]
STUDY = """\
name: probes
runs:
  base: {kind: probe, model: none}
  each: {kind: probe, model: {run: base}, seeds: 3}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "probes.yaml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def asked(cli: Cli, *words: object) -> dict[str, Any]:
    ran = cli("study", *words, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_a_study_is_planned_run_looked_at_and_gathered(cli: Cli, file: Path) -> None:
    planned = asked(cli, "plan", file)
    assert (planned["runs"], planned["done"], planned["hours"]) == (4, 0, None)
    assert asked(cli, "status", file)["counts"]["planned"] == 4
    assert asked(cli, "run", file)["counts"]["done"] == 4
    assert asked(cli, "status", file)["counts"]["done"] == 4
    assert asked(cli, "watch", file)["counts"]["done"] == 4
    table = asked(cli, "table", file)
    assert [row["state"] for row in table["rows"]] == ["done"] * 4
    assert all(Path(path).is_file() for path in table["files"])
    assert asked(cli, "plan", file)["hours"] == 0


def test_tables_are_for_people(cli: Cli, file: Path) -> None:
    assert "4" in cli("study", "plan", file).out
    ran = cli("study", "run", file)
    assert ran.code == 0, ran.err
    assert "done" in ran.out
    assert "each" in cli("study", "table", file).out


def test_part_of_a_study_failing_is_exit_code_6(cli: Cli, file: Path) -> None:
    file.write_text(STUDY.replace("model: none", "model: none, options: {fail: true}"))
    ran = cli("study", "run", file, "--json")
    assert ran.code == 6
    assert json.loads(ran.out)["counts"] | {} == {
        "done": 0, "running": 0, "stale": 0, "failed": 1, "not run": 3, "planned": 0,
    }  # fmt: skip
    assert "1 of 4 runs failed, and 3 could not be made" in ran.err
    assert cli("study", "watch", file).code == 6


def test_watch_gives_up_where_nobody_works(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told, "IDLE", 0.05)
    monkeypatch.setattr(told, "EVERY", 0.02)
    ran = cli("study", "watch", file)
    assert ran.code == 6
    assert "4 runs are missing, and nobody works on them" in ran.err
    assert f"headcount study run {file}" in ran.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("plan", "gird"), 4, "Did you mean 'grid'?"),
        (("run", "FILE", "--workers", 0), 2, "workers"),
        (("run", "FILE", "--executor", "rya"), 2, "rya"),
        (("run", "FILE", "--executor", "ray", "--address", "127.0.0.1:1"), 1, "no Ray cluster at"),
    ],
)
def test_bad_input_is_one_sentence(
    cli: Cli, file: Path, words: tuple[Any, ...], code: int, said: str
) -> None:
    ran = cli("study", *(file if word == "FILE" else word for word in words))
    assert (ran.code, ran.out) == (code, ""), ran.err
    assert said in ran.err
    assert not (file.parent / "probes" / "runs").exists()


def test_mistakes_of_a_study_file_stand_one_a_line(cli: Cli, file: Path) -> None:
    file.write_text(STUDY.replace("seeds: 3", 'seeds: x, launch: 5, "a\\nb": 1'))
    ran = cli("study", "plan", file)
    assert ran.code == 2
    first, *lines = ran.err.splitlines()
    assert first == f"headcount: {file} has 3 mistakes."
    assert [line.split(":")[1].strip() for line in lines] == [
        "runs.each.a\\x0ab", "runs.each.launch", "runs.each.seeds",
    ]  # fmt: skip
    assert all(line.startswith("  line 4: ") for line in lines)


def test_very_many_runs_need_a_yes(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.studies.groups.MANY", 3)
    for verb in ("plan", "run", "status", "table", "watch"):
        ran = cli("study", verb, file)
        assert (ran.code, ran.out) == (2, "")
        assert "Pass --yes" in ran.err
    assert asked(cli, "plan", file, "--yes")["runs"] == 4
    assert asked(cli, "run", file, "--yes")["counts"]["done"] == 4


@pytest.mark.parametrize(("module", "extra"), [("ray", "ray"), ("submitit", "slurm")])
def test_what_is_not_installed_is_named_with_its_command(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    ran = cli("study", "run", file, "--executor", extra)
    assert ran.code == 3
    assert f"pip install 'headcount[{extra}]'" in ran.err


def test_without_slurm_it_is_said(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = cli("study", "run", file, "--executor", "slurm")
    assert ran.code == 1
    assert "There is no SLURM here: the command sbatch is not found." in ran.err


def test_a_record_of_a_newer_version_is_refused_and_stays(cli: Cli, file: Path) -> None:
    asked(cli, "run", file)
    path = next((file.parent / "probes" / "runs").glob("*/record.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    ran = cli("study", "run", file)
    assert ran.code == 2
    assert "has version 2, and this headcount reads 1" in ran.err
    assert path.is_file()
    assert not (file.parent / "probes" / "damaged").exists()


def test_a_full_disk_stops_a_study_that_goes_on_later(cli: Cli, file: Path) -> None:
    asked(cli, "plan", file)
    with full_after(700):  # a lease fits, a record does not
        ran = cli("study", "run", file)
    assert (ran.code, ran.out) == (1, ""), ran.err
    assert "File too large. The study stops here: what is done is kept." in ran.err
    counts = asked(cli, "status", file)["counts"]
    assert (counts["planned"], counts["failed"], counts["stale"]) == (4, 0, 0)
    assert asked(cli, "run", file)["counts"]["done"] == 4


def begun(file: Path, *words: str, deaf: bool = False) -> subprocess.Popen[str]:
    """A driver with a run that lasts, once that has begun; `deaf` as with nohup and &."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    file.write_text(STUDY.replace("model: none", "model: none, options: {wait: 60}"))
    line = [sys.executable, "-m", "headcount", "study", "run", str(file), *words]
    process = subprocess.Popen(
        line, stderr=subprocess.PIPE, text=True, preexec_fn=ignore if deaf else None
    )
    until = time.monotonic() + 60
    while not list((file.parent / "probes" / "claims").glob("*/lease-*.json")):
        assert time.monotonic() < until
        time.sleep(0.05)
    return process


def test_ctrl_c_leaves_with_130_and_says_how_to_go_on(file: Path) -> None:
    process = begun(file)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command again goes on" in err
    assert "Traceback" not in err
    assert list((file.parent / "probes" / "claims").glob("*/lease-*.json")) == []


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_driver_in_the_background_can_be_ended(file: Path, executor: str) -> None:
    process = begun(file, "--executor", executor, deaf=True)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert f"kill {process.pid} ends it" in err
    assert "the same command again goes on" in err
    assert "Traceback" not in err
    assert list((file.parent / "probes" / "claims").glob("*/lease-*.json")) == []


def test_nothing_but_a_run_needs_torch(file: Path) -> None:
    code = (
        "import sys, headcount as hc; study = hc.study(sys.argv[1]); study.plan(); study.run()\n"
        "study.status(); study.table(); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
