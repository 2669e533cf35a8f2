"""The four papers: their items, their own numbers, their claims, and the runs that test them."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.papers.claims import Claim as Claim
    from headcount.papers.claims import Statistic as Statistic
    from headcount.papers.claims import Verdict as Verdict
    from headcount.papers.claims import read_claims as read_claims
    from headcount.papers.finished import FinishedRun as FinishedRun
    from headcount.papers.finished import PaperRuns as PaperRuns
    from headcount.papers.items import read_items as read_items
    from headcount.papers.numbers import read_paper as read_paper
    from headcount.papers.scales import DataPaths as DataPaths
    from headcount.papers.sheets import DrawnItem as DrawnItem

__getattr__, __dir__ = lazily(__name__)
