"""Figures and pages from what was measured. Nothing here imports torch."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.views.figures import save_figure as save_figure
    from headcount.views.page.report import Report as Report
    from headcount.views.page.report import report as report

__getattr__, __dir__ = lazily(__name__)
