from __future__ import annotations

from headcount.runs.kinds.transfer import TransferOptions
from headcount.runs.run import Run
from runs.kinds.asking import READING, assert_asked_again


def test_a_record_asked_again_gives_the_same(trained):
    options = TransferOptions(finetuned=str(trained[1]), input_options=READING)
    record = assert_asked_again(Run("transfer", "pocket", options=options))
    assert (record["pretrained"], record["finetuned"]) == ("pocket", str(trained[1]))
