"""One run: what is asked, of what, and its record."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.runs.kinds import KINDS as KINDS
    from headcount.runs.kinds.kind import RunContext as RunContext
    from headcount.runs.kinds.kind import RunKind as RunKind
    from headcount.runs.kinds.kind import RunOutput as RunOutput
    from headcount.runs.kinds.prune import Prune as Prune
    from headcount.runs.prune_result import PruneResult as PruneResult
    from headcount.runs.record import Record as Record
    from headcount.runs.record import load_record as load_record
    from headcount.runs.run import Run as Run
    from headcount.runs.subject import Subject as Subject

__getattr__, __dir__ = lazily(__name__)
