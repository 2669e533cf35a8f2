"""Runs from the question to the record: a model cut and scored once, or along a curve."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.studies.executors.protocol import Executor as Executor
    from headcount.studies.executors.protocol import ExecutorOptions as ExecutorOptions
    from headcount.studies.ledger import Ledger as Ledger
    from headcount.studies.plan import Cell as Cell
    from headcount.studies.plan import Plan as Plan
    from headcount.studies.points import StudyResult as StudyResult
    from headcount.studies.search.answers import SearchResult as SearchResult
    from headcount.studies.search.options import SearchOptions as SearchOptions
    from headcount.studies.study import Study as Study

__getattr__, __dir__ = lazily(__name__)
