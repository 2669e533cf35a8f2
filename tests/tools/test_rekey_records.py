"""Packed records in the present form of a run."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from headcount.base.header import header
from headcount.runs.run import Run
from tools.pack_records import main as pack
from tools.rekey_records import main, renamed


def test_keys_are_renamed_wherever_they_stand():
    before = {"a": [{"old": 1}], "runs.x.old.n": 2, "older": "old"}
    assert renamed(before, {"old": "new"}) == {"a": [{"new": 1}], "runs.x.new.n": 2, "older": "old"}


def test_a_run_lies_under_the_key_of_its_new_form(tmp_path: Path):
    run = {"kind": "evaluate", "model": "pocket", "task": "pocket-sentiment", "options": {}}
    old = {**run, "opening": {"device": "cpu"}}
    folder = tmp_path / "pocket"
    (folder / "runs" / "0123456789abcdef").mkdir(parents=True)
    (folder / "studies").mkdir()
    (folder / "runs/0123456789abcdef/record.json").write_text(
        json.dumps({"format": 1, "kind": "evaluate", "run": old, "n": 0.1})
    )
    study = {"asked": {"runs.a.opening.device": "cpu"}, "runs": ["0123456789abcdef"]}
    (folder / "studies/pocket.json").write_text(json.dumps(study))
    pack(folder, tmp_path / "records.tar.xz")
    main(tmp_path / "records.tar.xz", {"opening": "model_options"})
    with tarfile.open(tmp_path / "records.tar.xz") as archive:
        archive.extractall(tmp_path / "new", filter="data")
    key = Run.read(run | {"model_options": {"device": "cpu"}}).key
    record = json.loads((tmp_path / f"new/pocket/runs/{key}/record.json").read_text())
    assert record["n"] == 0.1
    assert record.items() >= header("evaluate").items()
    assert record["run"]["model_options"] == {"device": "cpu"}
    study = json.loads((tmp_path / "new/pocket/studies/pocket.json").read_text())
    assert study == header("plan") | {
        "asked": {"runs.a.model_options.device": "cpu"},
        "runs": [key],
    }
