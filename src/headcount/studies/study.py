"""A study file, its folder and what came of it: plan, run, status, table.

study = hc.study("methods.yaml", out="runs")
study.plan(); study.run(executor="processes", workers=4); study.status(); study.table()
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headcount.base.errors import UsageError
from headcount.base.files import discard, expanded, read_json, write_json
from headcount.base.header import header
from headcount.base.json_object import JsonDict
from headcount.runs.notes import log
from headcount.runs.run import InMemory
from headcount.studies.driver import Again, Driver, DriveResult, Progress
from headcount.studies.executors.protocol import Executor, ExecutorOptions, make_executor
from headcount.studies.executors.serial import Serial
from headcount.studies.gather import StudyTable, gather
from headcount.studies.groups import read_plan
from headcount.studies.ledger import RUNS, STUDIES, Ledger, State, holder_of
from headcount.studies.plan import Plan

if TYPE_CHECKING:
    from headcount.runs.subject import Subjects

Note = Callable[[str], None]
STATES = ("done", "running", "stale", "failed", "not run", "planned")


@dataclass(frozen=True, kw_only=True)
class Status:
    """What became of the runs of a study."""

    name: str
    folder: Path
    counts: Mapping[str, int]
    """done, running, stale, failed, not run, planned -> how many."""
    failed: Sequence[Mapping[str, object]]
    """Key, group, axes and error of each that failed."""
    running: Sequence[Mapping[str, object]]
    """Key, group, axes and holder of each under way, or left by its worker."""

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return not any(self.counts[name] for name in ("running", "stale", "planned"))

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "total": sum(self.counts.values()),
            "counts": dict(self.counts),
            "failed": list(self.failed),
            "running": list(self.running),
        }


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

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return {**vars(self), "folder": str(self.folder), "groups": dict(self.groups)}


@dataclass(frozen=True, eq=False)
class Study:
    """A plan and the folder where its runs are kept."""

    planned: Plan
    folder: Path
    about: Mapping[str, object] | None = None
    """What all its runs depend on, where more runs of the same may be added; None for a file."""
    command: str | None = None
    """The command that asks for it."""

    @cached_property
    def ledger(self) -> Ledger:
        """The folder's runs and claims."""
        return Ledger(self.folder, self.planned.settings.lease)

    def __repr__(self) -> str:
        return f"Study({self.planned.name}: {len(self.planned.by_key)} runs in {self.folder})"

    def plan(self) -> PlanSummary:
        """Count the runs, and judge by finished ones how long the others take."""
        cells, states = self.planned.by_key, self._states()
        seconds: dict[tuple[str, ...], list[float]] = {}
        left: list[tuple[tuple[str, ...], float | None]] = []
        for key, cell in cells.items():
            kind = (cell.run.kind, cell.group, str(cell.axes.get("method")))
            if states[key].name == "done":
                seconds.setdefault(kind, []).append(float(self.ledger.record(key)["seconds"]))
            else:
                left.append((kind, cell.seconds))
        known = {kind: sum(item) / len(item) for kind, item in seconds.items()}
        judged = [flat for kind, text in left if (flat := known.get(kind, text)) is not None]
        finished = sum(map(len, seconds.values()))
        return PlanSummary(
            name=self.planned.name,
            folder=self.folder,
            runs=len(cells),
            cells=len(self.planned.cells),
            done=finished,
            groups=Counter(cell.group for cell in self.planned.cells),
            hours=sum(judged) / 3600 if judged or not left else None,
            judged_by=finished,
            unjudged=len(left) - len(judged),
        )

    def run(
        self,
        executor_options: ExecutorOptions | None = None,
        *,
        again: Again | None = None,
        update: bool = False,
        note: Note = log,
        progress: Progress | None = None,
        subjects: Subjects | None = None,
        logging: Mapping[str, object] | None = None,
        executor: Executor | None = None,
    ) -> DriveResult:
        """Carry out what is missing; what failed is tried again where that is asked for.

        `again` is "retry", from where a failed run was, or "restart", from its beginning. `update`
        goes on with a study file that has changed. `subjects` has models that are opened already,
        `logging` says which trackers are told of its runs. `executor` is one that has more to
        do after this: whoever made it closes it.
        """
        is_new = self._require_same(update, note)
        executor_options = executor_options or ExecutorOptions()
        self._require_portable(executor_options)
        closes = executor is None
        threads = self.planned.settings.threads
        executor = executor or make_executor(self.folder, executor_options, threads)
        if isinstance(executor, Serial) and subjects is not None:
            executor.subjects, executor.note = subjects, note
        if is_new:  # written when there is somebody to carry it out
            try:
                write_json(self._file, self._now)
            except BaseException:
                executor.close()
                raise
        driver = Driver(
            plan=self.planned,
            ledger=self.ledger,
            executor=executor,
            note=note,
            progress=progress or (lambda done, total: None),
            logging=logging or {},
            closes=closes,
        )
        return driver.drive(again)

    def _require_portable(self, executor_options: ExecutorOptions) -> None:
        """Refuse a model in memory where its runs would go to other processes."""
        held = any(isinstance(cell.run.model, InMemory) for cell in self.planned.cells)
        if held and executor_options.executor != "serial":
            raise UsageError(
                f"The executor '{executor_options.executor}' cannot reach a model, rows or a "
                "method that are in this process's memory: save them and pass their names."
            )

    def begin(self, executor_options: ExecutorOptions, note: Note = log) -> None:
        """Write down what is asked, or refuse it where the folder was begun with something else."""
        self._require_portable(executor_options)
        if self._require_same(False, note):
            write_json(self._file, self._now)

    def discard(self, results: Sequence[str] = (), *, known: bool = False) -> None:
        """Delete the study in this folder: results, its runs but for those of others, its file.

        Without its file, only where the results are `known` to be of a study.
        """
        old = self._written() or ({"runs": []} if known else None)
        if old is None:
            for path in (self.folder / name for name in (*results, RUNS)):
                empty = path.name == RUNS and path.is_dir() and not any(path.iterdir())
                if os.path.lexists(path) and not empty:
                    raise UsageError(
                        f"{path} is nothing that this study wrote, so --overwrite does not delete "
                        "it: choose another --out, or delete it yourself."
                    )
            return
        for name in results:
            discard(self.folder / name)
        others = {
            key
            for path in (self.folder / STUDIES).glob("*.json")
            if path != self._file
            for key in _runs_in(path)
        }
        for key in sorted(set(old["runs"]) - others):
            self.ledger.discard(key)
        discard(self._file)

    def status(self) -> Status:
        """What became of each run."""
        cells, states = self.planned.by_key, self._states()
        void = self._void(states)
        names = {key: "not run" if key in void else state.name for key, state in states.items()}
        about = {
            key: {"key": key, "group": cell.group, "axes": dict(cell.axes)}
            for key, cell in cells.items()
            if names[key] in ("failed", "running", "stale")
        }
        return Status(
            name=self.planned.name,
            folder=self.folder,
            counts={name: Counter(names.values())[name] for name in STATES},
            failed=[
                {**item, "error": (states[key].failure or {}).get("error")}
                for key, item in about.items()
                if names[key] == "failed"
            ],
            running=[
                {**item, "state": names[key], "holder": holder_of(states[key])}
                for key, item in about.items()
                if names[key] != "failed"
            ],
        )

    @property
    def is_new(self) -> bool:
        """Whether the folder does not say yet what the study of this name is."""
        return self._written() is None

    def is_done(self) -> bool:
        """Whether every run is done."""
        return all(state.name == "done" for state in self._states().values())

    def is_worked_on(self, now: Status) -> bool:
        """Whether a run is under way, or a SLURM job for one is to come."""
        from headcount.studies.executors.slurm import SUBMITTED, queued

        if now.counts["running"] or not (self.folder / SUBMITTED).is_dir():
            return bool(now.counts["running"])
        return shutil.which("squeue") is None or bool(queued(self.folder))

    def table(self) -> StudyTable:
        """The finished runs as rows, and what they come to over their seeds."""
        return gather(self.planned, self.ledger)

    def _states(self) -> dict[str, State]:
        return self.ledger.states(self.planned.by_key)

    def _void(self, states: Mapping[str, State]) -> set[str]:
        """Runs that cannot be made because one that they start from failed."""
        void: set[str] = set()
        for key, cell in self.planned.by_key.items():  # inputs come first
            before = [run.key for run in cell.run.inputs]
            bad = any(item in void or states[item].name == "failed" for item in before)
            if bad and states[key].name not in ("done", "failed"):
                void.add(key)
        return void

    def _require_same(self, update: bool, note: Note) -> bool:
        """Refuse a study file that asks for other runs than it did; whether it is a new one."""
        old, now = self._written(), self._now
        if old is None:
            return True
        if self.about is not None:
            from headcount.runs.identity import require_same

            if text := require_same(old.get("about"), self.about, self.folder):
                note(text)
            now["runs"] = sorted({*now["runs"], *old["runs"]})  # they stay this study's
            return (old["runs"], old.get("command")) != (now["runs"], now["command"])
        if (old["runs"], old.get("threads")) == (now["runs"], now["threads"]):
            return False
        changes = _difference(old, now)
        if not update:
            raise UsageError(
                f"The study '{self.planned.name}' in {self.folder} was begun with another file: "
                f"{changes}. Put that back to go on with it, pass --update to go on with the new "
                "one (runs that both ask for stay), or use another --out."
            )
        note(f"The study goes on with another file: {changes}.")
        return True

    def _written(self) -> JsonDict | None:
        """What the folder says of the study of this name."""
        if not self._file.is_file():
            return None
        data = read_json(self._file, "study")
        if not isinstance(data, dict) or not isinstance(data.get("runs"), list):
            raise UsageError(f"{self._file} is damaged: delete it, and the study goes on.")
        return data

    @property
    def _file(self) -> Path:
        return self.folder / STUDIES / f"{self.planned.name}.json"

    @cached_property
    def _now(self) -> JsonDict:
        """What the study file asks for."""
        return header("plan") | {
            "name": self.planned.name,
            "command": self.command,
            "threads": self.planned.settings.threads,
            "asked": _flat(self.planned.data),
            "about": self.about,
            "runs": sorted(self.planned.by_key),
        }


def _runs_in(path: Path) -> list[str]:
    """The runs that another study in the folder asks for."""
    data = read_json(path, "study")
    return data["runs"] if isinstance(data, dict) and isinstance(data.get("runs"), list) else []


def _flat(data: object, path: str = "") -> dict[str, object]:
    """Every value of a nest by its place."""
    if isinstance(data, Mapping) and data:
        items = data.items()
    elif isinstance(data, list) and any(isinstance(item, Mapping | list) for item in data):
        items = enumerate(data)
    else:
        return {path: data}
    flat = {}
    for name, value in items:
        flat |= _flat(value, f"{path}.{name}" if path else str(name))
    return flat


def _difference(then: Mapping[str, Any], now: Mapping[str, Any], most: int = 8) -> str:
    """What a study file asks for that it did not, in words."""
    old, new = then.get("asked") or {}, now["asked"]
    gone = len(set(then["runs"]) - set(now["runs"]))
    come = len(set(now["runs"]) - set(then["runs"]))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    changes = [f"{name} was {old.get(name)}, now {new.get(name)}" for name in names[:most]]
    if then.get("threads") != now["threads"]:
        changes.append(f"threads was {then.get('threads')}, now {now['threads']}")
    if not changes:
        changes.append("a model or data that it names has changed")
    return f"{'; '.join(changes)} ({gone} runs of before are gone, {come} are new)"


def study(
    file: str | Path | Mapping[str, Any], out: str | Path | None = None, *, many: bool = False
) -> Study:
    """A study file, or the same as a mapping, and the folder of its runs.

    `file` is YAML, TOML or JSON, or the name of a study that ships with headcount; `out` is where
    its runs are kept, in place of what the file says; `many` allows over 100,000 runs.
    """
    request = read_plan(file, many=many)
    return Study(request, expanded(out) if out is not None else request.out)
