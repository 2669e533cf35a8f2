"""A wrong name, ratio or folder is refused before torch is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headcount.base.errors import HeadcountError, UsageError
from headcount.cli.early import check

STUDY = ["--task", "cola", "--out", "new"]
OWN = ["--task", "classification", "--columns", "txt", "--label", "label"]
WRONG: list[tuple[list[str], int, str]] = [
    (["inspect", "./nowhere"], 4, "There is no model './nowhere'"),
    (["inspect", "pockt"], 4, "Did you mean 'pocket-bert'?"),
    (["inspect", "full"], 4, "it has no config.json"),
    (["redundancy", "pocket", "--distances", "jss"], 2, "There is no distance 'jss'"),
    (["redundancy", "pocket", "--task", "colla"], 2, "There is no task 'colla'"),
    (["redundancy", "pocket", "--out", "full"], 2, "full is a folder, not a file"),
    (["redundancy", "pocket", "--figure", "full"], 2, "full is a folder, not a file"),
    (["importance", "pocket", "--task", "colla"], 2, "There is no task 'colla'"),
    (["importance", "pocket", "--task", "cola", "--out", "full"], 2, "is a folder"),
    (["run", "nowhere.json"], 4, "Cannot read the record or run nowhere.json"),
    (["run", "file"], 2, "file is no record or run"),
    (["transfer", "pocket", "./no"], 4, "There is no model './no'"),
    (["transfer", "pocket", "pocket", "--pretraining-task", "x"], 2, "There is no task 'x'"),
    (["transfer", "pocket", "pocket", "--out", "file"], 2, "file is a file, not a folder"),
    (["attention", "pocket", "--text", "a", "--stack", "encodr"], 2, "no stack 'encodr'"),
    (["attention", "pocket", "./no", "--text", "a"], 4, "There is no model './no'"),
    (["attention", "pocket", "--text", "a", "--out", "file"], 2, "is a file, not a folder"),
    (["prune", "pocket", "--out", "full"], 2, "new or empty folder"),
    (["prune", "pocket", "--out", "file/sub"], 1, "Cannot write file/sub"),
    (["prune", "pocket", "--out", "new", "--method", "clustr"], 2, "Did you mean 'cluster'?"),
    (["prune", "pocket", "--out", "new", "--ratio", "1.5"], 2, "between 0 and 1, not 1.5"),
    (["prune", "pocket", "--out", "new", "--distances", "jss"], 2, "There is no distance"),
    (["prune", "pocket", "--out", "new", "--preset", "poket"], 2, "There is no preset 'poket'"),
    (["prune", "pocket", "--out", "new", "--stack", "encodr"], 2, "Did you mean 'encoder'?"),
    (["curve", "pocket", *STUDY, "--methods", "random,clustr"], 2, "There is no method 'clustr'"),
    (["curve", "pocket", *STUDY, "--ratios", "0.5,2"], 2, "between 0 and 1, not 2.0"),
    (["curve", "pocket", "--task", "cola", "--out", "file"], 2, "is a file, not a folder"),
    (["compare", "pocket", *STUDY, "--methods", "all-heads,surgen+recover"], 2, "'surgen'"),
    (["compare", "pocket", *STUDY, "--ratio", "-1"], 2, "between 0 and 1, not -1"),
    (["sweep", "pocket", *STUDY, "--over", "mu=1", "--method", "rndom"], 2, "method 'rndom'"),
    (["sweep", "pockt", *STUDY, "--over", "mu=1"], 4, "There is no model 'pockt'"),
    (["remove", "pocket", "--keep", "1", "--out", "full"], 2, "new or empty folder"),
    (["bench", "pocket", "--ratio", "0.5", "7"], 2, "between 0 and 1, not 7"),
    (["export", "pocket", "--to", "onnx", "--out", "full"], 2, "new or empty folder"),
    (["train", "pocket", "--task", "colla", "--out", "new"], 2, "There is no task 'colla'"),
    (["train", "pocket", "--task", "cola", "--out", "file"], 2, "is a file, not a folder"),
    (["evaluate", "./no", "--task", "cola"], 4, "There is no model './no'"),
    (["evaluate", "pocket", "--task", "cola", "--predictions", "full"], 2, "is a folder"),
    (["bench", "pocket", "--repeats", "0"], 2, "0 rounds are too few"),
    (["search", "pocket", *STUDY, "--max-drop", "1%", "--repeats", "2"], 2, "repeats"),
    (["redundancy", "pocket", "--calibration", "nofile"], 4, "There is no file 'nofile'"),
    (["prune", "pocket", "--ratio", "0.5", "--calibration", "no", "--out", "n"], 4, "no file 'no'"),
    (["evaluate", "pocket", "--task", "cola", "--data", "no"], 4, "no folder or file 'no'"),
    (["train", "pocket", *OWN, "--train", "no.csv", "--out", "new"], 4, "no file 'no.csv'"),
    *[
        ([*line, *OWN, "--data", data], 2, "has no column txt. Did you mean 'text'? It has: text")
        for line in (
            ["evaluate", "pocket"], ["train", "pocket", "--out", "new"],
            ["prune", "pocket", "--ratio", "0.5", "--out", "new"],
            ["curve", "pocket", "--out", "new"], ["compare", "pocket", "--out", "new"],
            ["search", "pocket", "--max-drop", "1%", "--out", "new"], ["importance", "pocket"],
        )
        for data in ("rows.csv", "rows", "rows.tsv", "rows.jsonl", "rows.parquet")
    ],
    (["evaluate", "pocket", "--task", "regression", "--data", "rows.csv"], 2, "pass --columns"),
    (["evaluate", "pocket", *OWN], 2, "pass --data DIR"),
    (["demo", "--out", "full"], 2, "new or empty folder"),
    *[
        ([*line, "--out", out], 2, said)
        for line in (
            ["redundancy", "pocket"], ["roles", "pocket"],
            ["importance", "pocket", "--task", "cola"],
            ["transfer", "pocket", "pocket"], ["attention", "pocket", "--text", "a"],
            ["prune", "pocket", "--ratio", "0.5"], ["curve", "pocket", "--task", "cola"],
            ["compare", "pocket", "--task", "cola"], ["search", "pocket", "--task", "cola",
            "--max-drop", "1%"], ["sweep", "pocket", "--task", "cola", "--over", "mu=1"],
            ["remove", "pocket", "--keep", "1"], ["export", "pocket", "--to", "onnx"],
            ["train", "pocket", "--task", "cola"], ["demo"], ["report", "full"],
            ["study", "run", "grid"], ["study", "plan", "grid"], ["reproduce", "pocket"],
            ["run", "full"],
        )
        for out, said in (
            ("dangling", "dangling is a link to not-there, which is not there"),
            ("a" * 230, "a name has 215 letters at most"),
        )
    ],
    (["evaluate", "pocket", "--task", "cola", "--predictions", "dangling"], 2, "is a link to"),
    (["prune", "model", "--ratio", "0.5", "--out", "model", "--overwrite"], 2, "is what is read"),
    (["prune", "model", "--ratio", "0.5", "--out", "link", "--overwrite"], 2, "is what is read"),
    (["prune", "up/model", "--ratio", "0.5", "--out", "up", "--overwrite"], 2, "lies in up"),
    (["train", "model", "--task", "cola", "--out", "model"], 2, "is what is read"),
    (["train", "pocket", "--task", "cola", "--out", "model"], 2, "headcount did not train"),
    (["search", "up/model", "--task", "cola", "--max-drop", "1%", "--out", "up", "--overwrite"], 2,
     "up/model is read and lies in up, which --overwrite empties"),
    (["redundancy", "pocket", "--calibration", "file", "--out", "file"], 2, "is what is read"),
    (["prune", "pocket", "--ratio", "0.5", "--out", "mine", "--overwrite"], 2,
     "notes.txt is nothing that headcount wrote"),
    (["redundancy", "pocket", "--out", "file"], 2, "is not the result of the same run"),
    (["roles", "pocket", "--out", "file"], 2, "is not the result of the same run"),
    (["importance", "pocket", "--task", "cola", "--out", "file"], 2, "is not the result of"),
]  # fmt: skip
SCRIPT = """
import sys
from headcount.cli.main import main
for line in {lines!r}:
    code = main(line)
    print(code, sorted({{"torch", "transformers", "numba"}} & set(sys.modules)), file=sys.stderr)
"""


def test_nothing_heavy_is_imported_to_say_no(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "rows").mkdir()
    for place in ("rows.csv", "rows/train.csv", "rows/dev.csv"):
        (tmp_path / place).write_text("text,label\na,0\n")
    (tmp_path / "rows.tsv").write_text("text\tlabel\na\t0\n")
    (tmp_path / "rows.jsonl").write_text('{"text": "a", "label": 0}\n')
    pq.write_table(pa.table({"text": ["a"], "label": [0]}), tmp_path / "rows.parquet")
    (tmp_path / "dangling").symlink_to("not-there")
    for name in ("model", "up/model"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "record.json").write_text("{}")
    (tmp_path / "up" / "record.json").write_text("{}")
    (tmp_path / "link").symlink_to("model")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "record.json").write_text("{}")
    (tmp_path / "mine" / "notes.txt").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(lines=[line for line, _, _ in WRONG])],
        capture_output=True, text=True, cwd=tmp_path, check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = done.stderr.splitlines()
    assert len(told) == 2 * len(WRONG), done.stderr
    for (line, code, words), sentence, state in zip(WRONG, told[::2], told[1::2], strict=True):
        assert words in sentence, line
        assert state == f"{code} []", (line, sentence)


def test_names_that_may_be_on_the_hub_are_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    check("inspect", {"model": "owner/name"})
    check("inspect", {"model": "bert-base-uncased"})
    with pytest.raises(HeadcountError, match="not a folder or on the hub"):
        check("inspect", {"model": "runs/mrpc/1"})


def test_a_folder_of_someone_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(HeadcountError, match=r"Cannot write .*new: Permission denied\."):
        check("curve", {"out": tmp_path / "new"})


def test_the_first_process_looks_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_text("")
    monkeypatch.setenv("RANK", "1")
    check("prune", {"out": tmp_path})
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(UsageError, match="new or empty"):
        check("prune", {"out": tmp_path})


def test_what_is_right_passes(cli: Any, tmp_path: Path) -> None:
    check("compare", {"methods": ("all-heads", "surgeon+recover"), "ratio": 0.5})
    check("redundancy", {"distances": ["all"], "out": tmp_path / "a" / "b.npz", "model": "pocket"})
    with pytest.raises(UsageError, match=r"no method 'surgeon\+recover'"):
        check("curve", {"methods": ("surgeon+recover",)})


@pytest.mark.parametrize("command", ["train", "remove", "redundancy", "search"])
def test_a_name_that_is_not_utf8_is_refused_before_the_work(command: str, tmp_path: Path) -> None:
    out = tmp_path / os.fsdecode(b"o\xfe")
    with pytest.raises(UsageError, match="its name is not UTF-8"):
        check(command, {"out": out, "max_drop": "1 %"})
