from __future__ import annotations

import pytest

from headcount.errors import HeadcountError, UsageError
from headcount.heads import Mask
from headcount.learned.trace import Trace, load_trace
from headcount.models.find import layout
from headcount.models.remove import remove
from headcount.pruning.random import Random
from headcount.runs.asked import Prune
from headcount.runs.folder import require_free, write_folder
from headcount.runs.record import Record
from headcount.runs.run import Run
from models.zoo import build

RECORD = Record(
    run=Run("prune", "bert", options=Prune(method=Random(), ratio=0.0)),
    identity={"seed": 0},
    result={
        "method": "random",
        "seed": 0,
        "heads": {"before": 16, "after": 16, "kept": "4444"},
        "recover": False,
        "finetune": None,
    },
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
