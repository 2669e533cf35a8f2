"""All that touches a transformers model: find heads, gate, capture, remove, save, load, export."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.models.find import layout as layout
    from headcount.models.find import sites_of as sites_of
    from headcount.models.gates import gate as gate
    from headcount.models.model_options import ModelOptions as ModelOptions
    from headcount.models.numbers import read_mask as read_mask
    from headcount.models.processors import Processor as Processor
    from headcount.models.pruned import PrunedModel as PrunedModel
    from headcount.models.sites import Site as Site
    from headcount.models.verify import RoundingTest as RoundingTest

__getattr__, __dir__ = lazily(__name__)
