"""What became of runs, from the folder alone; who may work on one, and who may publish it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from headcount.base.errors import UsageError
from headcount.studies.lease import LostLeaseError, is_gone, me
from headcount.studies.ledger import CLAIMS, RUNS, WORK, Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "runs", lease=60)


def filled(ledger: Ledger, key: str, epoch: int, text: str = "{}") -> Path:
    made = ledger.work_of(key, epoch) / "made"
    made.mkdir(parents=True, exist_ok=True)
    (made / "record.json").write_text(text)
    return made


def foreign(ledger: Ledger, key: str, epoch: int) -> None:
    """Turn a lease into that of a process on another machine."""
    path = ledger.folder / CLAIMS / key / f"lease-{epoch:06}.json"
    path.write_text(json.dumps({**me(), "machine": "elsewhere", "host": "elsewhere"}))


def asleep(ledger: Ledger, key: str, epoch: int) -> None:
    """Let a lease be without a sign of life for an hour."""
    path = ledger.folder / CLAIMS / key / f"lease-{epoch:06}.json"
    os.utime(path, (time.time() - 3600,) * 2)


def test_a_run_is_planned_running_and_done(ledger: Ledger):
    assert ledger.state("a").name == "planned"
    lease = ledger.claim("a")
    assert lease is not None
    assert ledger.state("a").name == "running"
    assert ledger.claim("a") is None
    ledger.publish("a", lease, filled(ledger, "a", 1))
    assert ledger.states(["a", "b"])["a"].name == "done"
    assert ledger.claim("a") is None
    assert sorted(os.listdir(ledger.folder / WORK)) == []
    assert not (ledger.folder / CLAIMS / "a").exists()


def test_of_two_that_ask_at_once_one_gets_it(ledger: Ledger):
    from headcount.studies.lease import take

    folder = ledger.folder / CLAIMS / "a"
    first, second = take(folder, 1, 60), take(folder, 1, 60)
    assert first is not None
    assert second is None
    first.release()


def test_a_dead_process_is_known_at_once_and_its_work_is_taken_along(ledger: Ledger):
    code = (
        "import sys, os, pathlib; from headcount.studies.ledger import Ledger\n"
        "ledger = Ledger(sys.argv[1]); ledger.claim('a')\n"
        "(ledger.work_of('a', 1) / 'checkpoint').write_text('half')\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(ledger.folder)], check=False)
    assert ledger.state("a").name == "stale"
    lease = ledger.claim("a")
    assert lease is not None
    assert lease.epoch == 2
    assert (ledger.work_of("a", 2) / "checkpoint").read_text() == "half"
    assert not ledger.work_of("a", 1).exists()
    lease.release()


def test_who_comes_back_after_a_takeover_cannot_publish(ledger: Ledger):
    old = ledger.claim("a")
    assert old is not None
    filled(ledger, "a", 1)
    old.end()
    foreign(ledger, "a", 1)
    assert ledger.state("a").name == "running"
    asleep(ledger, "a", 1)
    assert ledger.state("a").name == "stale"
    new = ledger.claim("a")
    assert new is not None
    assert not old.mine
    with pytest.raises(LostLeaseError, match="taken over by another worker"):
        ledger.publish("a", old, ledger.work_of("a", 1) / "made")
    with pytest.raises(LostLeaseError):
        ledger.fail("a", old, {"error": "late"})
    ledger.publish("a", new, filled(ledger, "a", 2, '{"by": "new"}'))
    assert json.loads((ledger.folder / RUNS / "a" / "record.json").read_text()) == {"by": "new"}


def test_what_is_published_is_never_replaced(ledger: Ledger):
    lease = ledger.claim("a")
    assert lease is not None
    there = ledger.folder_of("a")
    there.mkdir(parents=True)
    (there / "record.json").write_text('{"first": 1}')
    ledger.publish("a", lease, filled(ledger, "a", 1, '{"second": 2}'))
    assert json.loads((there / "record.json").read_text()) == {"first": 1}


def test_a_failed_run_stays_failed_until_it_is_asked_for_again(ledger: Ledger):
    lease = ledger.claim("a")
    assert lease is not None
    (ledger.work_of("a", 1) / "half").write_text("done")
    ledger.fail("a", lease, {"error": "no"})
    state = ledger.state("a")
    assert (state.name, state.failure) == ("failed", {"error": "no"})
    assert ledger.claim("a") is None
    ledger.forget("a", work=False)
    assert ledger.state("a").name == "planned"
    lease = ledger.claim("a")
    assert lease is not None
    assert lease.epoch == 2
    assert (ledger.work_of("a", 2) / "half").exists()
    ledger.fail("a", lease, {"error": "no"})
    ledger.forget("a", work=True)
    lease = ledger.claim("a")
    assert lease is not None
    assert not (ledger.work_of("a", 3) / "half").exists()
    lease.release()


def test_a_lease_is_renewed_while_its_process_works(tmp_path: Path):
    ledger = Ledger(tmp_path, lease=0.6)
    lease = ledger.claim("a")
    assert lease is not None
    foreign(ledger, "a", 1)
    before = lease.path.stat().st_mtime_ns
    for _ in range(100):
        if lease.path.stat().st_mtime_ns != before:
            break
        time.sleep(0.05)
    assert lease.path.stat().st_mtime_ns > before
    lease.release()
    assert ledger.state("a").name == "planned"


def test_a_job_that_was_put_back_into_the_queue_knows_its_former_self(monkeypatch):
    then = {**me(), "machine": "elsewhere", "job": ["17", "0"]}
    assert not is_gone(then)
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert is_gone(then)
    monkeypatch.setenv("SLURM_JOB_ID", "18")
    assert not is_gone(then)


def test_what_a_kill_left_of_a_published_run_is_swept(ledger: Ledger):
    lease = ledger.claim("a")
    assert lease is not None
    lease.end()
    foreign(ledger, "a", 1)
    asleep(ledger, "a", 1)
    ledger.folder_of("a").mkdir(parents=True)
    (ledger.folder_of("a") / "record.json").write_text("{}")
    ledger.sweep(["a"])
    assert not (ledger.folder / CLAIMS / "a").exists()
    assert os.listdir(ledger.folder / WORK) == []
    assert ledger.state("a").name == "done"


def test_a_record_that_cannot_be_read_is_put_aside(ledger: Ledger):
    for number in range(2):
        ledger.folder_of("a").mkdir(parents=True)
        (ledger.folder_of("a") / "record.json").write_text('{"format": 1')
        with pytest.raises(UsageError, match="is no record"):
            ledger.record("a")
        aside = ledger.put_aside("a")
        assert aside.name == f"a-{number}"
        assert ledger.state("a").name == "planned"


def test_who_was_taken_over_stays_so_when_the_next_one_gives_up(ledger: Ledger):
    old = ledger.claim("a")
    assert old is not None
    old.end()
    foreign(ledger, "a", 1)
    asleep(ledger, "a", 1)
    new = ledger.claim("a")
    assert new is not None
    new.release()
    assert not old.mine
    assert ledger.state("a").name == "planned"
    third = ledger.claim("a")
    assert third is not None
    assert third.epoch == 3
    third.release()


def test_a_dead_process_that_nobody_asked_for_is_gone():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = psutil.Process(child.pid).create_time()
    holder = {**me(), "pid": child.pid, "began": began}
    assert not is_gone(holder)
    child.kill()
    until = time.monotonic() + 30
    while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert is_gone(holder)
    child.communicate()


def test_clocks_that_a_kill_left_are_swept(ledger: Ledger):
    (ledger.folder / CLAIMS).mkdir(parents=True)
    (ledger.folder / CLAIMS / ".now-1").touch()
    ledger.sweep(["a"])
    assert list((ledger.folder / CLAIMS).iterdir()) == []


def test_a_lease_from_the_future_is_stale_after_its_term(tmp_path: Path):
    ledger = Ledger(tmp_path, lease=0.5)
    lease = ledger.claim("a")
    assert lease is not None
    lease.end()
    foreign(ledger, "a", 1)
    os.utime(lease.path, (time.time() + 10**6,) * 2)
    assert ledger.state("a").name == "running"
    time.sleep(0.6)
    assert ledger.state("a").name == "stale"


@pytest.mark.parametrize("name", ["lease-000001.json", "lease-٠٠٠٠٠١.json"])
def test_a_claim_that_leads_nowhere_is_nobody_s(ledger: Ledger, name: str):
    folder = ledger.folder / CLAIMS / "a"
    folder.mkdir(parents=True)
    (folder / name).symlink_to("nowhere")
    assert ledger.state("a").name in ("planned", "stale")
    lease = ledger.claim("a")
    assert lease is not None
    lease.release()


def test_a_run_can_be_taken_over_any_number_of_times(ledger: Ledger):
    folder = ledger.folder / CLAIMS / "a"
    folder.mkdir(parents=True)
    (folder / "again-999999.json").write_text("{}")
    lease = ledger.claim("a")
    assert lease is not None
    assert lease.mine
    lease.release()
