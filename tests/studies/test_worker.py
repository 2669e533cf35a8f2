"""One run of a study in this process: what becomes of it in the study's folder."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from headcount.learned.methods import StraightThrough
from headcount.repair.finetune import Finetune
from headcount.runs.kinds.prune import Prune
from headcount.runs.run import Run
from headcount.studies.ledger import Ledger
from headcount.studies.worker import Job, _undisturbed, work
from headcount.training.options import TrainOptions
from headcount.training.scoring import Scoring

CLOSING = StraightThrough(gate_lr=50.0, mu=1.0, gate_momentum=0.0, gate_schedule="constant")
"""All gates close at the first step, where no ratio holds them."""


@pytest.fixture
def asked(model, tokenizer, tmp_path):
    """A run of a tiny model with such gates."""
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)

    def make(ratio) -> Run:
        train = TrainOptions(steps=2, batch_size=8, max_length=32)
        options = Prune(
            method=CLOSING, ratio=ratio, repair=(Finetune.of(train),), baseline=0,
            scoring=Scoring(limit=20, bootstrap=0),
        )  # fmt: skip
        return Run("prune", str(folder), task="pocket-sentiment", options=options)

    return make


def test_all_gates_closed_is_the_result_of_a_free_run(asked, tmp_path):
    run = asked("free")
    assert work(tmp_path / "study", Job(run=run.to_plain()))["state"] == "done"
    record = Ledger(tmp_path / "study").record(run.key)
    assert record["all_closed"]["step"] == 1
    assert record["heads"] == {"before": 12, "after": 0, "kept": "000"}
    assert record["scores"]["after"]["n"] == 20


def test_the_same_gates_at_a_ratio_keep_what_was_asked_for(asked, tmp_path):
    run = asked(0.5)
    assert work(tmp_path / "study", Job(run=run.to_plain()))["state"] == "done"
    record = Ledger(tmp_path / "study").record(run.key)
    assert "all_closed" not in record
    assert record["heads"]["after"] == 6


def test_a_signal_waits_whichever_thread_it_reaches():
    """One that the main thread blocks is delivered to another, and would interrupt it as well."""
    ended, seen = threading.Event(), []
    idle = threading.Thread(target=ended.wait)
    idle.start()

    def disturbed() -> None:
        with _undisturbed():
            assert idle.ident is not None
            signal.pthread_kill(idle.ident, signal.SIGINT)
            until = time.monotonic() + 0.2
            while time.monotonic() < until:
                pass
            seen.append("not interrupted")

    try:
        with pytest.raises(KeyboardInterrupt):
            disturbed()
    finally:
        ended.set()
        idle.join()
    assert seen == ["not interrupted"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
