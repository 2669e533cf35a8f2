"""How alike heads are: distances between their attention, and what follows from them."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.likeness.compare import LayerStructure as LayerStructure
    from headcount.likeness.compare import MatrixComparison as MatrixComparison
    from headcount.likeness.distances import DISTANCES as DISTANCES
    from headcount.likeness.measure import redundancy as redundancy
    from headcount.likeness.options import AgreementOptions as AgreementOptions
    from headcount.likeness.options import DistanceOptions as DistanceOptions
    from headcount.likeness.result import Measurement as Measurement
    from headcount.likeness.result import Redundancy as Redundancy
    from headcount.likeness.result import load_redundancy as load_redundancy

__getattr__, __dir__ = lazily(__name__)
