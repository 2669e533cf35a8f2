"""A study file, its folder and what came of it: plan, run, status, table.

study = hc.study("methods.yaml", out="runs")
study.plan(); study.run(executor="processes", workers=4); study.status(); study.table()
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from headcount.base.errors import UsageError
from headcount.base.files import expanded, read_json, write_json
from headcount.runs.notes import log
from headcount.studies.driver import Again, Driver, DriveResult, Progress
from headcount.studies.executors.protocol import Executor, ExecutorOptions, make_executor
from headcount.studies.gather import StudyTable, gather
from headcount.studies.ledger import STUDIES, Ledger, State, holder_of
from headcount.studies.plan import Plan
from headcount.studies.planned import read_plan

Note = Callable[[str], None]
STATES = ("done", "running", "stale", "failed", "not run", "planned")


@dataclass(frozen=True, kw_only=True)
class Status:
    """What became of the runs of a study."""

    name: str
    folder: Path
    counts: Mapping[str, int]
    """done, running, stale, failed, not run, planned -> how many."""
    failed: Sequence[Mapping[str, Any]]
    """Key, group, axes and error of each that failed."""
    running: Sequence[Mapping[str, Any]]
    """Key, group, axes and holder of each under way, or left by its worker."""

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return not any(self.counts[name] for name in ("running", "stale", "planned"))

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {
            "name": self.name, "folder": str(self.folder), "total": sum(self.counts.values()),
            "counts": dict(self.counts), "failed": list(self.failed),
            "running": list(self.running),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PlanSummary:
    """How much a study asks for, how much of it is there, and how long the rest may take."""

    name: str
    folder: Path
    runs: int
    """Different runs, those that others start from included."""
    cells: int
    """Combinations that the file asks for."""
    done: int
    groups: Mapping[str, int]
    """Group of runs -> how many."""
    hours: float | None
    """Of one run at a time for what is left, judged by finished runs of its kind, or by what the
    file says; None without both."""
    judged_by: int
    """Finished runs behind that estimate."""
    unjudged: int
    """Runs left that neither a finished run of their kind nor the file says anything about."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {**vars(self), "folder": str(self.folder), "groups": dict(self.groups)}


@dataclass(frozen=True, eq=False)
class Study:
    """A plan and the folder where its runs are kept."""

    asked: Plan
    folder: Path

    @cached_property
    def ledger(self) -> Ledger:
        """The folder's runs and claims."""
        return Ledger(self.folder, self.asked.settings.lease)

    def __repr__(self) -> str:
        return f"Study({self.asked.name}: {len(self.asked.by_key)} runs in {self.folder})"

    def plan(self) -> PlanSummary:
        """Count the runs, and judge by finished ones how long the others take."""
        cells, states = self.asked.by_key, self._states()
        seconds: dict[tuple[str, ...], list[float]] = {}
        left: list[tuple[tuple[str, ...], float | None]] = []
        for key, cell in cells.items():
            kind = (cell.run.kind, cell.group, str(cell.axes.get("method")))
            if states[key].name == "done":
                seconds.setdefault(kind, []).append(float(self.ledger.record(key)["seconds"]))
            else:
                left.append((kind, cell.seconds))
        known = {kind: sum(each) / len(each) for kind, each in seconds.items()}
        judged = [found for kind, said in left if (found := known.get(kind, said)) is not None]
        finished = sum(map(len, seconds.values()))
        return PlanSummary(
            name=self.asked.name, folder=self.folder, runs=len(cells), cells=len(self.asked.cells),
            done=finished, groups=Counter(cell.group for cell in self.asked.cells),
            hours=sum(judged) / 3600 if judged or not left else None, judged_by=finished,
            unjudged=len(left) - len(judged),
        )  # fmt: skip

    def run(
        self,
        executor_options: ExecutorOptions | None = None,
        *,
        again: Again | None = None,
        update: bool = False,
        note: Note = log,
        progress: Progress | None = None,
    ) -> DriveResult:
        """Carry out what is missing; what failed is tried again where that is asked for.

        `again` is "retry", from where a failed run was, or "restart", from its beginning. `update`
        goes on with a study file that has changed.
        """
        is_new = self._require_same(update, note)
        how = executor_options or ExecutorOptions()
        settings = self.asked.settings
        executor = make_executor(self.folder, how, settings.threads)
        if is_new:  # written when there is somebody to carry it out
            self._write_asked(executor)
        driver = Driver(
            plan=self.asked, ledger=self.ledger, executor=executor, note=note,
            progress=progress or (lambda done, total: None),
        )  # fmt: skip
        return driver.drive(again)

    def status(self) -> Status:
        """What became of each run."""
        cells, states = self.asked.by_key, self._states()
        void = self._void(states)
        names = {key: "not run" if key in void else state.name for key, state in states.items()}
        about = {
            key: {"key": key, "group": cell.group, "axes": dict(cell.axes)}
            for key, cell in cells.items()
            if names[key] in ("failed", "running", "stale")
        }
        return Status(
            name=self.asked.name,
            folder=self.folder,
            counts={name: Counter(names.values())[name] for name in STATES},
            failed=[
                {**each, "error": (states[key].failure or {}).get("error")}
                for key, each in about.items()
                if names[key] == "failed"
            ],
            running=[
                {**each, "state": names[key], "holder": holder_of(states[key])}
                for key, each in about.items()
                if names[key] != "failed"
            ],
        )

    def is_worked_on(self, now: Status) -> bool:
        """Whether a run is under way, or a SLURM job for one is to come."""
        from headcount.studies.executors.slurm import SUBMITTED, queued

        if now.counts["running"] or not (self.folder / SUBMITTED).is_dir():
            return bool(now.counts["running"])
        return shutil.which("squeue") is None or bool(queued(self.folder))

    def table(self) -> StudyTable:
        """The finished runs as rows, and what they come to over their seeds."""
        return gather(self.asked, self.ledger)

    def _states(self) -> dict[str, State]:
        return self.ledger.states(self.asked.by_key)

    def _void(self, states: Mapping[str, State]) -> set[str]:
        """Runs that cannot be made because one that they start from failed."""
        void: set[str] = set()
        for key, cell in self.asked.by_key.items():  # inputs come first
            before = [run.key for run in cell.run.inputs]
            bad = any(each in void or states[each].name == "failed" for each in before)
            if bad and states[key].name not in ("done", "failed"):
                void.add(key)
        return void

    def _require_same(self, update: bool, note: Note) -> bool:
        """Refuse a study file that asks for other runs than it did; whether it is a new one."""
        path = self._file
        if not path.is_file():
            return True
        then, now = read_json(path, "study"), self._now
        if not isinstance(then, dict) or not isinstance(then.get("runs"), list):
            raise UsageError(f"{path} is damaged: delete it, and the study goes on.")
        if (then["runs"], then.get("threads")) == (now["runs"], now["threads"]):
            return False
        said = _difference(then, now)
        if not update:
            raise UsageError(
                f"The study '{self.asked.name}' in {self.folder} was begun with another file: "
                f"{said}. Put that back to go on with it, pass --update to go on with the new "
                "one (runs that both ask for stay), or use another --out."
            )
        note(f"The study goes on with another file: {said}.")
        return True

    @property
    def _file(self) -> Path:
        return self.folder / STUDIES / f"{self.asked.name}.json"

    @cached_property
    def _now(self) -> dict[str, Any]:
        """What the study file asks for."""
        return {
            "name": self.asked.name,
            "threads": self.asked.settings.threads,
            "asked": _flat(self.asked.data),
            "runs": sorted(self.asked.by_key),
        }

    def _write_asked(self, executor: Executor) -> None:
        """Keep what the study file asks for, so that another one is refused."""
        try:
            write_json(self._file, self._now)
        except BaseException:
            executor.close()
            raise


def _flat(data: Any, place: str = "") -> dict[str, Any]:
    """Every value of a nest by its place."""
    if isinstance(data, Mapping) and data:
        items = data.items()
    elif isinstance(data, list) and any(isinstance(each, Mapping | list) for each in data):
        items = enumerate(data)
    else:
        return {place: data}
    found = {}
    for name, value in items:
        found |= _flat(value, f"{place}.{name}" if place else str(name))
    return found


def _difference(then: Mapping[str, Any], now: Mapping[str, Any], most: int = 8) -> str:
    """What a study file asks for that it did not, in words."""
    old, new = then.get("asked") or {}, now["asked"]
    gone = len(set(then["runs"]) - set(now["runs"]))
    come = len(set(now["runs"]) - set(then["runs"]))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    told = [f"{name} was {old.get(name)}, now {new.get(name)}" for name in names[:most]]
    if then.get("threads") != now["threads"]:
        told.append(f"threads was {then.get('threads')}, now {now['threads']}")
    if not told:
        told.append("a model or data that it names has changed")
    return f"{'; '.join(told)} ({gone} runs of before are gone, {come} are new)"


def study(
    file: str | Path | Mapping[str, Any], out: str | Path | None = None, *, many: bool = False
) -> Study:
    """A study file, or the same as a mapping, and the folder of its runs.

    `file` is YAML, TOML or JSON, or the name of a study that ships with headcount; `out` is where
    its runs are kept, in place of what the file says; `many` allows over 100,000 runs.
    """
    asked = read_plan(file, many=many)
    return Study(asked, expanded(out) if out is not None else asked.out)
