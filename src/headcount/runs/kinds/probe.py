"""A run that measures nothing: to see that a machine, an executor or a cluster does its work."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from headcount import __version__
from headcount.base.errors import UsageError
from headcount.base.options import to_plain
from headcount.runs.kinds.kind import RunContext, RunKind, RunOutput
from headcount.runs.results import Result

if TYPE_CHECKING:
    from headcount.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class ProbeResult(Result):
    """A machine or an executor that did its work."""

    model: str
    """What stood in the place of a model."""
    message: str
    """What it was told to say."""
    seed: int
    """The seed of the run."""
    host: str
    """The machine."""

    def columns(self) -> dict[str, Any]:
        """What it was told to say."""
        return {"message": self.message}


@dataclass(frozen=True, kw_only=True)
class Probe(RunKind):
    """Try a machine or an executor: nothing is measured, and no model is opened."""

    result: ClassVar = ProbeResult
    opens_model: ClassVar = False

    wait: float = 0.0
    """Seconds to sleep."""
    work: float = 0.0
    """Seconds of processor time to use up, in one thread."""
    fail: bool = False
    """Fail in the end."""
    say: str = ""
    """What comes out."""

    def __post_init__(self) -> None:
        if not (0 <= self.wait < 1e6 and 0 <= self.work < 1e6):
            raise UsageError("A probe waits and works for 0 seconds or more.")

    def execute(self, run: Run, context: RunContext) -> RunOutput:
        """Wait, use the processor, fail: whatever the options say."""
        time.sleep(self.wait)
        until = time.process_time() + self.work
        while time.process_time() < until:
            hashlib.blake2b(bytes(10_000)).hexdigest()
        if self.fail:
            raise UsageError(f"This probe was asked to fail. {self.say}".strip())
        identity = {
            "model": run.model,
            "device": "cpu",
            "versions": {"headcount": __version__},
            "kind": run.kind,
            "options": to_plain(self),
            "seed": run.seed,
        }
        host = os.uname().nodename
        result = ProbeResult(model=str(run.model), message=self.say, seed=run.seed, host=host)
        return RunOutput(result=result, identity=identity, rows={})
