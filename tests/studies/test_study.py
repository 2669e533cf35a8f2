"""A study from its file to its table, carried out here and in processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import headcount as hc
from headcount.base.errors import UsageError
from headcount.studies.executors.protocol import ExecutorOptions
from headcount.studies.lease import me
from headcount.studies.study import Study

PROBES: dict[str, Any] = {
    "name": "probes",
    "lease": 5,
    "runs": {
        "base": {"kind": "probe", "model": "none", "options": {"say": "base"}},
        "each": {
            "kind": "probe", "model": {"run": "base"}, "seeds": 3,
            "grid": {"options.say": ["a", "b"]},
        },
    },
}  # fmt: skip


def opened(folder: Path, data: Any = PROBES) -> Study:
    path = folder / "study.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return hc.study(path, folder / "out")


def test_a_plan_takes_the_hours_from_its_file_until_runs_are_done(tmp_path: Path):
    groups = {name: {**group, "seconds": 1800} for name, group in PROBES["runs"].items()}
    study = opened(tmp_path, {**PROBES, "runs": groups})
    planned = study.plan()
    assert (planned.hours, planned.judged_by, planned.unjudged) == (3.5, 0, 0)
    study.run()
    again = opened(tmp_path, {**PROBES, "runs": {**groups, "more": {**groups["base"], "seed": 9}}})
    assert again.plan().hours == 0.5
    with pytest.raises(hc.HeadcountError, match="seconds of a run are a number above 0"):
        opened(tmp_path, {**PROBES, "runs": {"base": {**groups["base"], "seconds": "long"}}})


def without_clocks(study: Study) -> list[dict[str, Any]]:
    rows = study.table().rows
    return [{name: row[name] for name in row if name != "seconds"} for row in rows]


def test_a_study_is_planned_run_and_gathered(tmp_path: Path):
    study = opened(tmp_path)
    planned = study.plan()
    assert (planned.runs, planned.cells, planned.done, planned.hours) == (7, 7, 0, None)
    found = study.run()
    assert (found.done, found.failed, found.not_run, found.left) == (7, {}, {}, 0)
    assert study.status().counts["done"] == 7
    assert study.status().over
    assert study.plan().hours == 0
    table = study.table()
    assert [(row["group"], row["say"], row["seed"], row["message"]) for row in table.rows][:3] == [
        ("base", None, None, "base"), ("each", "a", 0, "a"), ("each", "b", 0, "b"),
    ]  # fmt: skip
    assert [(line["say"], line["runs"]) for line in table.summary] == [
        (None, 1),
        ("a", 3),
        ("b", 3),
    ]
    csv, parquet = table.save(tmp_path / "tables")
    assert csv.read_text().splitlines()[0].startswith("group,seed,say,key,state,kind")
    import pyarrow.parquet as pq

    assert pq.read_table(parquet).num_rows == 7


def test_what_is_done_is_found_again_by_another_study_of_the_folder(tmp_path: Path):
    opened(tmp_path).run()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("*.json")}
    other = {**PROBES, "name": "others", "runs": {"mine": PROBES["runs"]["base"]}}
    found = opened(tmp_path, other)
    assert found.plan().done == 1
    assert found.run().done == 1
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_failure_does_not_stop_the_rest_and_marks_what_needs_it(tmp_path: Path):
    data = json.loads(json.dumps(PROBES))
    data["runs"]["base"]["options"]["fail"] = True
    data["runs"]["alone"] = {"kind": "probe", "model": "none"}
    study = opened(tmp_path, data)
    found = study.run()
    assert (found.done, len(found.failed), len(found.not_run)) == (1, 1, 6)
    status = study.status()
    assert (status.counts["failed"], status.counts["not run"], status.counts["done"]) == (1, 6, 1)
    assert "asked to fail" in status.failed[0]["error"]
    assert study.run().done == 1  # failed runs are not tried again unless that is asked for
    again = study.run(again="retry")
    assert len(again.failed) == 1
    claims = tmp_path / "out" / "claims" / next(iter(again.failed))
    assert sorted(path.name for path in claims.glob("failed-*")) == ["failed-000002.json"]


def test_a_file_that_has_changed_is_refused_with_the_difference(tmp_path: Path):
    opened(tmp_path).run()
    data = json.loads(json.dumps(PROBES))
    data["runs"]["each"]["seeds"] = 4
    study = opened(tmp_path, data)
    with pytest.raises(UsageError, match=r"runs\.each\.seeds was 3, now 4 \(0 runs .* 2 are new\)"):
        study.run()
    told: list[str] = []
    assert study.run(update=True, note=told.append).done == 9
    assert "goes on with another file" in told[0]
    assert study.run().done == 9


def test_a_damaged_record_is_put_aside_and_made_again(tmp_path: Path):
    study = opened(tmp_path)
    study.run()
    want = without_clocks(study)
    key = next(iter(study.planned.by_key))
    record = study.ledger.folder_of(key) / "record.json"
    record.write_text(record.read_text()[:100])
    damaged = study.table()
    assert (damaged.rows[0]["state"], len(damaged.damaged)) == ("damaged", 1)
    told: list[str] = []
    study.run(note=told.append)
    assert "is put aside" in told[0]
    assert without_clocks(study) == want


def test_processes_give_the_same_table(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    here, there = opened(tmp_path / "a"), opened(tmp_path / "b")
    here.run()
    there.run(ExecutorOptions(executor="processes", workers=2))
    assert without_clocks(here) == without_clocks(there)


SLOW = {**PROBES, "runs": {"slow": {"kind": "probe", "model": "none", "seeds": 4,
                                    "options": {"wait": 1.5}}}}  # fmt: skip
DRIVE = (
    "import sys, headcount as hc\n"
    "hc.study(sys.argv[1], sys.argv[2]).run(hc.ExecutorOptions(executor=sys.argv[3]))"
)


def drive(folder: Path, executor: str) -> subprocess.Popen[bytes]:
    file = str(folder / "study.json")
    return subprocess.Popen([sys.executable, "-c", DRIVE, file, str(folder / "out"), executor])


def wait_for(study: Study, state: str, count: int = 1) -> None:
    until = time.monotonic() + 120
    while study.status().counts[state] < count:
        assert time.monotonic() < until, study.status().counts
        time.sleep(0.05)


def pids(study: Study) -> list[int]:
    return [int(each["holder"].split()[1]) for each in study.status().running if each["holder"]]


def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path):
    study = opened(tmp_path, SLOW)
    driver = drive(tmp_path, "processes")
    wait_for(study, "running")
    os.kill(pids(study)[0], signal.SIGKILL)
    assert driver.wait(120) == 0
    assert study.status().counts["done"] == 4
    assert os.listdir(tmp_path / "out" / "work") == []


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_a_driver_that_is_killed_loses_nothing_that_was_done(tmp_path: Path, executor: str):
    study = opened(tmp_path, SLOW)
    driver = drive(tmp_path, executor)
    wait_for(study, "done")
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    published = (tmp_path / "out" / "runs").rglob("record.json")
    before = {path: path.stat().st_mtime_ns for path in published}
    assert study.run().done == 4
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())


def test_two_drivers_share_the_work(tmp_path: Path):
    study = opened(tmp_path, SLOW)
    drivers = [drive(tmp_path, "serial") for _ in range(2)]
    assert [driver.wait(120) for driver in drivers] == [0, 0]
    assert study.status().counts["done"] == 4
    holders = {record.stat().st_mtime_ns for record in (tmp_path / "out").rglob("record.json")}
    assert len(holders) == 4


def test_an_interrupted_driver_gives_its_run_back(tmp_path: Path):
    study = opened(tmp_path, SLOW)
    driver = drive(tmp_path, "processes")
    wait_for(study, "running", 1)
    driver.send_signal(signal.SIGINT)
    driver.wait(60)
    assert study.status().counts["running"] == study.status().counts["stale"] == 0
    assert study.run().done == 4


def test_a_worker_that_sleeps_through_its_lease_does_not_publish(tmp_path: Path):
    data = json.loads(json.dumps(SLOW)) | {"lease": 1.0}
    data["runs"]["slow"] |= {"seeds": 1, "options": {"wait": 4}}
    study = opened(tmp_path, data)
    sleeper = drive(tmp_path, "serial")
    wait_for(study, "running")
    sleeper.send_signal(signal.SIGSTOP)
    wait_for(study, "stale")
    other = drive(tmp_path, "serial")
    wait_for(study, "running")
    sleeper.send_signal(signal.SIGCONT)
    assert [sleeper.wait(60), other.wait(60)] == [0, 0]
    assert study.status().counts["done"] == 1
    assert os.listdir(tmp_path / "out" / "claims") == []


def test_a_model_that_was_not_kept_is_made_again_when_a_run_starts_from_it(tmp_path: Path):
    few = {"training": {"steps": 1, "batch_size": 4}, "rows": 8}
    base = {"kind": "train", "model": "pocket", "task": "pocket-acceptability", "options": few}
    scored = {
        "kind": "evaluate", "model": {"run": "base"}, "task": "pocket-acceptability",
        "options": {"scoring": {"limit": 8, "bootstrap": 2}},
    }  # fmt: skip
    first = opened(tmp_path, {"name": "first", "runs": {"base": base}})
    first.run()
    then = first.table().rows[0]["score"]
    notes: list[str] = []
    second = opened(tmp_path, {"name": "second", "runs": {"base": base, "scored": scored}})
    found = second.run(note=notes.append)
    assert (found.done, found.failed) == (2, {})
    assert ["made again" in note for note in notes] == [True]
    assert second.table().rows[0]["score"] == then
    again = second.run(note=notes.append)
    assert (again.done, len(notes)) == (2, 1)
    (second.ledger.folder_of(next(iter(second.planned.by_key))) / "model.safetensors").unlink()
    again = second.run(note=notes.append)  # nothing that starts from it is missing
    assert (again.done, len(notes)) == (2, 1)


def test_a_model_that_changes_while_a_study_runs_fails_its_run(tmp_path: Path):
    """The driver handed such a run over for ever: the worker did another one, under another key."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"name": name}))
    runs = {name: {"kind": "probe", "model": name} for name in ("first", "second")}
    runs["after"] = {"kind": "probe", "model": {"run": "second"}}
    study = opened(tmp_path, {"name": "probes", "runs": runs})
    assert len(study.planned.by_key) == 3
    (tmp_path / "second" / "config.json").write_text('{"other": 1}')
    rounds: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        rounds.append((done, total))
        assert len(rounds) < 40

    found = study.run(progress=progress)
    assert rounds[0] == (0, 3)  # before the first run has ended
    assert (found.done, len(found.failed), len(found.not_run)) == (1, 1, 1)
    (why,) = found.failed.values()
    assert "has changed since the study was planned" in why
    assert str(tmp_path / "second") in why
    assert study.status().counts["failed"] == 1


def test_a_model_that_changes_during_its_run_is_not_published(tmp_path: Path, monkeypatch: Any):
    from headcount.studies import worker

    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    study = opened(tmp_path, {"name": "p", "runs": {"a": {"kind": "probe", "model": "model"}}})
    measure = worker.execute

    def changing(run: Any) -> Any:
        (tmp_path / "model" / "config.json").write_text('{"other": 1}')
        return measure(run)

    monkeypatch.setattr(worker, "execute", changing)
    found = study.run()
    assert (found.done, len(found.failed)) == (0, 1)
    assert os.listdir(tmp_path / "out" / "work") == []  # nothing to go on from


def lease_of_another(study: Study, text: str) -> Path:
    """The first run of a study, claimed by a process that is not this one."""
    key = next(iter(study.planned.by_key))
    folder = study.ledger.folder / "claims" / key
    folder.mkdir(parents=True)
    (folder / "lease-000001.json").write_text(text, encoding="utf-8")
    return folder / "lease-000001.json"


ELSEWHERE: dict[str, Any] = {
    "host": "far", "machine": "far", "pid": 7, "began": 1.0, "job": None, "taken": 1.0,
}  # fmt: skip


def test_waiting_for_another_driver_is_said(tmp_path: Path):
    study = opened(tmp_path, {**PROBES, "lease": 1.5})
    lease = lease_of_another(study, json.dumps(ELSEWHERE))
    os.utime(lease, (time.time() + 10**6,) * 2)  # a clock was set back
    notes: list[str] = []
    assert study.run(note=notes.append).done == 7
    assert notes == [
        "1 run is worked on by process 7 on far: this driver waits, and takes over what gives no "
        "sign of life for 1.5 seconds."
    ]


@pytest.mark.parametrize(
    "holder",
    [
        {**ELSEWHERE, "pid": -1}, {**ELSEWHERE, "pid": True}, {**ELSEWHERE, "pid": 2**80},
        {**ELSEWHERE, "began": "x"}, {**ELSEWHERE, "job": 5}, {**ELSEWHERE, "job": [1]},
        {name: value for name, value in ELSEWHERE.items() if name != "host"}, [], None,
    ],
)  # fmt: skip
def test_a_damaged_lease_is_put_aside(tmp_path: Path, holder: Any):
    study = opened(tmp_path)
    if isinstance(holder, dict):
        holder["machine"] = me()["machine"]
    lease = lease_of_another(study, json.dumps(holder))
    assert study.status().counts["stale"] == 1
    notes: list[str] = []
    assert study.run(note=notes.append).done == 7
    (note,) = notes
    assert f"{lease} is damaged" in note
    (aside,) = (study.ledger.folder / "damaged").iterdir()
    assert str(aside) in note
    assert json.loads(aside.read_text()) == holder
