"""Carry a plan out: whatever is ready goes to an executor, until every run is done, failed or void.

The folder is the only truth. Several drivers may work on it at once, under different executors, and
any of them may be killed: a run is made once, and the next driver goes on with what is there.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from headcount.base.errors import HeadcountError
from headcount.base.header import FormatError
from headcount.runs.products import has_product, leaves_model
from headcount.studies.executors.protocol import Executor, JobEnd
from headcount.studies.ledger import Ledger, State, holder_of
from headcount.studies.plan import Cell, Plan
from headcount.studies.worker import Job

POLL = 0.5
"""Seconds between two looks at runs that are another driver's."""
Progress = Callable[[int, int], None]
Again = Literal["retry", "restart"]


@dataclass(frozen=True, kw_only=True)
class DriveResult:
    """How it went."""

    done: int
    failed: dict[str, str]
    """Key -> why."""
    not_run: dict[str, str]
    """Key -> the key of the run that failed before it."""
    left: int = 0
    """Runs that were handed over and are still to come."""


@dataclass(kw_only=True)
class Driver:
    """A plan under way."""

    plan: Plan
    ledger: Ledger
    executor: Executor
    note: Callable[[str], None]
    progress: Progress = lambda done, total: None
    logging: Mapping[str, object] = field(default_factory=dict)
    """Options of `Logging` for its runs."""
    closes: bool = True
    """Whether the executor has nothing to do after this plan."""
    settled: dict[str, str] = field(default_factory=dict)
    """Key -> done, failed or not run."""
    why: dict[str, str] = field(default_factory=dict)
    """Key -> why a run failed, or the key of the run that failed before it."""

    def __post_init__(self) -> None:
        self.queue = deque(self.plan.by_key)
        self.done = 0
        self.blocked: dict[str, list[str]] = {}
        self.elsewhere: dict[str, str] = {}
        self.waited_for: set[str] = set()
        self.submitted: set[str] = set()
        self.deaths: Counter[str] = Counter()
        self.needed: set[str] = set()

    def drive(self, again: Again | None = None) -> DriveResult:
        """Go on until nothing is left to do, or all is handed over."""
        total, looked = len(self.plan.by_key), time.monotonic()
        self._look_after(again)
        try:
            while len(self.settled) < total:
                self._start()
                self.progress(self.done, total)  # before the first run ends, too
                ended = self.executor.ended(POLL if self.submitted else 0)
                for end in ended:
                    self._take_back(end)
                if self.executor.leaves and not self.queue:
                    break
                self.progress(self.done, total)
                if not ended and not self.queue and not self.submitted:
                    self._say_who_works()
                    time.sleep(POLL)  # the rest is another driver's
                if time.monotonic() - looked > POLL:
                    looked = time.monotonic()
                    self._look_elsewhere()
        except BaseException:
            self.executor.close()
            raise
        if self.closes:
            self.executor.close()
        self.ledger.sweep(self.plan.by_key)  # after workers that died when their run was published
        return self._summary()

    def _look_after(self, again: Again | None) -> None:
        """Sweep up after kills, put damaged records aside, and let failed runs be tried again."""
        keys = list(self.plan.by_key)
        self.ledger.sweep(keys)
        for key, state in self.ledger.states(keys).items():
            if state.name == "done":
                try:
                    self.ledger.record(key)
                except FormatError:
                    raise
                except HeadcountError as error:
                    aside = self.ledger.put_aside(key)
                    self.note(f"{error} It is put aside in {aside}, and the run is made again.")
            elif state.name == "failed" and again is not None:
                self.ledger.forget(key, work=again == "restart")
        self.needed = self._models_needed()

    def _models_needed(self) -> set[str]:
        """Runs whose model was asked for, or that a run starts from which is to be made."""
        states = self.ledger.states(list(self.plan.by_key))
        needed = {cell.key for cell in self.plan.cells if cell.keep}
        for key, cell in reversed(self.plan.by_key.items()):  # a run before what it starts from
            if states[key].name != "done" or (key in needed and self._lacks_its_model(cell)):
                needed.update(self._inputs(key))
        return needed

    def _start(self) -> None:
        """Hand over what is ready, as much as the executor takes."""
        while self.queue and self.executor.room() > 0:
            key = self.queue.popleft()
            waits = [before for before in self._inputs(key) if self.settled.get(before) != "done"]
            if bad := next((before for before in waits if before in self.settled), None):
                self._settle(key, "not run", bad)
            elif waits and not self.executor.leaves:
                self.blocked.setdefault(waits[0], []).append(key)
            else:
                self._begin(key, waits)

    def _inputs(self, key: str) -> list[str]:
        return [run.key for run in self.plan.by_key[key].run.inputs]

    def _begin(self, key: str, waits: list[str]) -> None:
        """Hand a run over, unless it is done, has failed, or is another driver's."""
        cell, settings = self.plan.by_key[key], self.plan.settings
        state = self.ledger.state(key)
        if state.name == "done" and key in self.needed and self._lacks_its_model(cell):
            aside = self.ledger.put_aside(key)
            self.note(
                f"A run of '{cell.group}' is done, but its model was not kept, and is needed now: "
                f"it is made again; its record is in {aside}."
            )
            state = self.ledger.state(key)
        if state.name == "stale" and state.holder is None:
            aside = self.ledger.put_lease_aside(key, state.epoch)
            lease = self.ledger.lease_of(key, state.epoch)
            self.note(f"The lease {lease} is damaged: it is put aside in {aside}.")
        if state.name == "running":
            self.elsewhere[key] = holder_of(state) or "another process"
        elif state.name in ("done", "failed"):
            self._settle(key, state.name, _why(state))
        else:
            job = Job(
                run=cell.run,
                key=key,
                keep=cell.keep,
                launch=cell.launch,
                threads=settings.threads,
                lease=settings.lease,
                logging=self._logging(cell),
            )
            self.submitted.add(key)
            self.executor.submit(key, job, waits)

    def _logging(self, cell: Cell) -> dict[str, object]:
        name = " ".join(word for word in (str(self.logging.get("run", "")), cell.label) if word)
        return {**self.logging, "run": name or None} if self.logging else {}

    def _lacks_its_model(self, cell: Cell) -> bool:
        folder = self.ledger.folder_of(cell.key)
        return leaves_model(cell.run) and not has_product(cell.run, folder)

    def _settle(self, key: str, state: str, why: str | None = None) -> None:
        self.settled[key] = state
        self.done += state == "done"
        if why is not None:
            self.why[key] = why
        self.queue.extendleft(reversed(self.blocked.pop(key, [])))

    def _look_elsewhere(self) -> None:
        """See what has become of runs that another driver or worker has."""
        for key, state in self.ledger.states(list(self.elsewhere)).items():
            if state.name != "running":
                del self.elsewhere[key]
                self.queue.append(key)

    def _say_who_works(self) -> None:
        """Say for whom this driver waits, once for each."""
        new = {holder for holder in self.elsewhere.values() if holder not in self.waited_for}
        if not new:
            return
        self.waited_for |= new
        count = sum(holder in new for holder in self.elsewhere.values())
        runs = "run is" if count == 1 else "runs are"
        self.note(
            f"{count} {runs} worked on by {', '.join(sorted(new))}: this driver waits, and takes "
            f"over what gives no sign of life for {self.ledger.lease:g} seconds."
        )

    def _take_back(self, ended: JobEnd) -> None:
        """A job has ended, one way or the other; the folder says which."""
        key = ended.key
        self.submitted.discard(key)
        if ended.state == "unwritten":
            raise HeadcountError(
                f"{ended.error} The study stops here: what is done is kept. "
                "Free some space or write elsewhere, and run the same command again."
            )
        if ended.state == "died":
            self.deaths[key] += 1
            if self.deaths[key] > self.plan.settings.retries:
                text = f"Its process died {self.deaths[key]} times, the last time so: {ended.error}"
                self.ledger.give_up(key, {"error": text, "exit_code": 1})
        state = self.ledger.state(key)
        if state.name in ("done", "failed"):
            self._settle(key, state.name, _why(state))
        else:
            self.queue.append(key)

    def _summary(self) -> DriveResult:
        by_state = {
            state: [k for k, settled in self.settled.items() if settled == state] for state in ALL
        }
        return DriveResult(
            done=len(by_state["done"]),
            failed={key: self.why[key] for key in by_state["failed"]},
            not_run={key: self.why[key] for key in by_state["not run"]},
            left=len(self.plan.by_key) - len(self.settled),
        )


ALL = ("done", "failed", "not run")


def _why(state: State) -> str | None:
    return str((state.failure or {}).get("error")) if state.name == "failed" else None
