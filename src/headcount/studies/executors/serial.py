"""One run after the other, in this process: what the last one opened is there for the next.

Runs that only close gates of one model wait for each other: the first of them is scored in one pass
with those that follow it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.base.errors import HeadcountError
from headcount.runs.notes import Note, log
from headcount.runs.products import on_inputs
from headcount.runs.run import Run
from headcount.studies.executors.protocol import ExecutorOptions, JobEnd
from headcount.studies.ledger import Ledger
from headcount.studies.worker import Job, opened_subjects, work

if TYPE_CHECKING:
    from headcount.runs.kinds.kind import RunResult
    from headcount.runs.subject import Subjects

AT_ONCE = 32
"""Jobs that are taken: as many masks as are scored in one pass."""


class Serial:
    """Carries out one job whenever it is asked which have ended."""

    leaves = False

    def __init__(self, folder: Path, executor_options: ExecutorOptions, threads: int) -> None:
        self.folder = folder
        self.waiting: deque[tuple[str, Job]] = deque()
        self.scored: dict[str, RunResult | HeadcountError] = {}
        """Of runs that were scored in one pass with another, and are not published yet."""
        self.subjects: Subjects | None = None
        """What is opened already; None is what this process has opened for its last runs."""
        self.note: Note = log

    def room(self) -> int:
        """As many as may share a pass over the rows."""
        return AT_ONCE - len(self.waiting)

    def submit(self, key: str, job: Job, after: Sequence[str]) -> None:
        """Put it behind the others."""
        self.waiting.append((key, job))

    def ended(self, seconds: float) -> list[JobEnd]:
        """Do the next job."""
        if not self.waiting:
            return []
        key, job = self.waiting[0]
        outcome = work(self.folder, job, self)
        self.waiting.popleft()
        return [JobEnd(key, outcome["state"], outcome["error"])]

    def result(self, key: str) -> RunResult | None:
        """The result of a run that only closes gates, scored with those that wait behind it."""
        from headcount.runs.together import log_record, prune_together, share_a_pass
        from headcount.training.logging import Logging

        first = self.waiting[0][1]
        if key not in self.scored:
            if not getattr(first.read().options, "gated", False):
                return None
            runs = {name: self._ready(job) for name, job in self.waiting if not job.launch}
            several = {name: run for name, run in runs.items() if share_a_pass(runs[key], run)}
            if key not in several:
                return None
            subjects = self.subjects or opened_subjects()
            results = prune_together(list(several.values()), subjects, self.note)
            self.scored = dict(zip(several, results, strict=True))
        result = self.scored.pop(key)
        if isinstance(result, HeadcountError):
            raise result
        log_record(Logging(**first.logging), result.record)
        return result

    def _ready(self, job: Job) -> Run:
        """A run on what those that it starts from have left."""
        run, ledger = job.read(), Ledger(self.folder)
        return on_inputs(run, lambda before: ledger.folder_of(before.key)) if run.inputs else run

    def close(self) -> None:
        """Nothing is left."""
