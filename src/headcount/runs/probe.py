"""A run that measures nothing: to see that a machine, an executor or a cluster does its work."""

from __future__ import annotations

import hashlib
import os
import time

from headcount import __version__
from headcount.base.errors import UsageError
from headcount.base.options import to_plain
from headcount.runs.kinds import Probe
from headcount.runs.record import Record
from headcount.runs.run import Run


def probe(run: Run) -> Record:
    """Wait, use the processor, fail: whatever the options say."""
    asked, started = run.asked(Probe), time.monotonic()
    time.sleep(asked.wait)
    until, rounds = time.process_time() + asked.work, 0
    while time.process_time() < until:
        hashlib.blake2b(bytes(10_000)).hexdigest()
        rounds += 1
    if asked.fail:
        raise UsageError(f"This probe was asked to fail. {asked.say}".strip())
    about = {
        "model": run.model, "device": "cpu", "versions": {"headcount": __version__},
        "kind": run.kind, "options": to_plain(asked), "seed": run.seed,
    }  # fmt: skip
    result = {"model": run.model, "said": asked.say, "seed": run.seed, "host": os.uname().nodename}
    seconds = round(time.monotonic() - started, 1)
    return Record(run=run, identity=about, result=result, seconds=seconds)
