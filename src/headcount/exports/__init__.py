"""Models for those who do not have headcount: one file for each group of formats."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.exports.export import ExportResult as ExportResult
    from headcount.exports.formats import FORMATS as FORMATS
    from headcount.exports.formats import ExportFormat as ExportFormat
    from headcount.exports.inputs import Feeds as Feeds
    from headcount.exports.inputs import Probes as Probes
    from headcount.exports.inputs import find_probes as find_probes

__getattr__, __dir__ = lazily(__name__)
