"""A run that is started as several processes, inside a study."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cluster.conftest import clean, opened
from cluster.tiny import data_in, tiny
from headcount.studies.executors.protocol import ExecutorOptions
from launching import TWO


def test_accelerate_launch_trains_a_model_that_others_start_from(tmp_path: Path):
    data = tiny(data_in(tmp_path / "data"))
    data["runs"] = {name: data["runs"][name] for name in ("base", "felt")}
    data["runs"]["base"]["launch"] = [sys.executable, *TWO]
    study = opened(tmp_path, data)
    found = study.run(ExecutorOptions(executor="processes", workers=1))
    assert (found.done, found.failed) == (2, {})
    base = next(cell for cell in study.planned.cells if cell.group == "base")
    record = json.loads((study.ledger.folder_of(base.key) / "record.json").read_text())
    assert record["steps"] == 3
    assert record["run"]["model"] == "pocket"
    assert (study.ledger.folder_of(base.key) / "model.safetensors").is_file()
    assert clean(study)
