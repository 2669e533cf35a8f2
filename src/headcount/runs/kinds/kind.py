"""What every kind of run has: its options are a class derived from `RunKind`.

Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from headcount.base.errors import UsageError
from headcount.runs.notes import Note, log
from headcount.runs.results import PlainResult, Result
from headcount.training.logging import Logging

if TYPE_CHECKING:
    from headcount.runs.record import Record
    from headcount.runs.run import Run
    from headcount.runs.subject import Subjects

MODEL = "model"
"""The product of a run whose folder is a model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunContext:
    """Where and how a run is executed: nothing that its result depends on."""

    out: str | Path | None = None
    """Where what there is to write goes."""
    store: str | Path | None = None
    """Where runs that this one starts from are found and kept; beside `out` when left out."""
    work: Path | None = None
    """Where a run that was interrupted goes on; the caller deletes it."""
    overwrite: bool = False
    """Replace what is in `out`."""
    command: str | None = None
    """The command line that asked for it, for the record."""
    report: Callable[..., Any] | None = None
    """Called with progress, as the function that does the work calls it."""
    note: Note = log
    """Called with what must not be missed."""
    subjects: Subjects | None = None
    """What earlier runs of this process have opened."""
    logging: Logging | None = None
    """Which trackers training is logged to."""
    may_close: bool = False
    """All gates of a free run may close: that is a result like others."""


@dataclass(frozen=True, eq=False)
class RunResult:
    """A finished run: its record, and what came out as the library's own value."""

    record: Record
    value: Any


@dataclass(frozen=True, kw_only=True, eq=False)
class RunOutput:
    """What came out of a run, before it is put on record."""

    result: Result
    identity: Mapping[str, Any]
    rows: Mapping[str, Any]
    value: Any = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunKind:
    """The options of one kind of run, with what is done; derived classes are frozen dataclasses."""

    result: ClassVar[type[Result]] = PlainResult
    """The type of what comes out, with its columns in the table of a study."""
    seeded: ClassVar[str | None] = None
    """The field whose options draw with the seed of the run: see `Run.seed`."""
    needs_task: ClassVar[bool] = False
    """Refuse a run without a task."""
    opens_model: ClassVar[bool] = True
    """Refuse a run whose model cannot be one."""

    def product(self) -> str | None:
        """What other runs can start from: MODEL, the name of a file, or None for the record."""
        return None

    def execute(self, run: Run, context: RunContext) -> RunOutput | RunResult:
        """Do what is asked; `self` are the options of `run`, with its seed."""
        raise NotImplementedError

    def plan(self, run: Run) -> dict[str, Any]:
        """What a dry run says: nothing is measured or written."""
        raise UsageError(f"There is no dry run of the kind '{run.kind}'.")
