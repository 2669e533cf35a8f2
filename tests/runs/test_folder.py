from __future__ import annotations

from dataclasses import replace

import pytest

from headcount.base.errors import HeadcountError, UsageError
from headcount.heads import Mask
from headcount.learned.trace import Trace, load_trace
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.pruning.random import Random
from headcount.runs.folder import finished, require_free, workspace, write_folder
from headcount.runs.kinds.prune import Prune
from headcount.runs.prune_result import PruneResult
from headcount.runs.record import Record
from headcount.runs.run import Run
from models.zoo import build
from runs.whole import result

RECORD = Record(
    run=Run("prune", "bert", options=Prune(method=Random(), ratio=0.0)),
    identity={"seed": 0},
    result=result(
        PruneResult, {"method": "random", "heads": {"before": 16, "after": 16, "kept": "4444"}}
    ),
)


class Broken:
    """A tokenizer that the disk has no room for."""

    def __init__(self, error):
        self.error = error

    def save_pretrained(self, folder):
        raise self.error


@pytest.mark.parametrize(
    ("error", "seen"),
    [(OSError(28, "No space left"), HeadcountError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_a_folder_that_cannot_be_finished_is_not_there(tmp_path, error, seen):
    model = build("bert")
    mask = Mask.full(layout(model))
    small = remove(model, mask)
    with pytest.raises(seen):
        write_folder(tmp_path / "out", RECORD, small, mask, Broken(error))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out").mkdir()  # an empty folder may be there
    trace = Trace(layout(model), about={"method": "subset"})
    write_folder(tmp_path / "out", RECORD, small, mask, trace=trace)
    assert load_trace(tmp_path / "out").about == {"method": "subset"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "record.json").is_file()
    assert require_free(tmp_path / "out") == tmp_path / "out"  # its own: `finished` looks into it
    with pytest.raises(UsageError, match="new or empty"):
        require_free(tmp_path)


def test_weights_can_be_read_by_whoever_may_read_the_rest(tmp_path, odd_rights):
    model = build("bert")
    mask = Mask.full(layout(model))
    write_folder(tmp_path / "out", RECORD, remove(model, mask), mask)
    assert odd_rights(tmp_path / "out") == {}


class BrokenTrace(Trace):
    def save(self, path):
        raise OSError(28, "No space left")


def test_without_its_trace_the_folder_is_not_there(tmp_path):
    model = build("bert")
    mask = Mask.full(layout(model))
    with pytest.raises(HeadcountError, match="No space left"):
        write_folder(
            tmp_path / "out", RECORD, remove(model, mask), mask, trace=BrokenTrace(mask.layout)
        )
    assert list(tmp_path.iterdir()) == []


def test_files_that_were_changed_after_they_were_written_are_not_believed(tmp_path):
    model = build("bert")
    mask = Mask.full(layout(model))
    out, told = tmp_path / "out", []
    record = write_folder(out, replace(RECORD, result=replace(RECORD.result, mask=mask)),
                          remove(model, mask), mask)  # fmt: skip
    kept = finished(out, RECORD.identity, told.append)
    assert kept is not None
    assert kept[2] == record
    assert "nothing is computed again" in told[-1]
    data = bytearray((out / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (out / "model.safetensors").write_bytes(data)
    with pytest.raises(UsageError, match="has other files than its record was written with"):
        finished(out, RECORD.identity, told.append)


def test_a_workspace_that_does_not_say_whose_it_is_is_emptied(tmp_path):
    work, about, there = tmp_path / "work", {"seed": 0}, []

    def killed():
        with workspace(work, about, there.append):
            there.append((work / "checkpoint-1").exists())
            (work / "checkpoint-1").mkdir(exist_ok=True)
            raise KeyboardInterrupt

    for lost in (False, False, True, False):
        if lost:
            (work / "settings.json").unlink()
        with pytest.raises(KeyboardInterrupt):
            killed()
    assert there == [False, True, False, True]
