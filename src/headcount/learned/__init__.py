"""Gates that are trained together with the weights: which heads stay is learned, not decided."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.learned.keeper import AllClosedError as AllClosedError
    from headcount.learned.methods import GateOptions as GateOptions
    from headcount.learned.methods import HardConcrete as HardConcrete
    from headcount.learned.methods import StraightThrough as StraightThrough
    from headcount.learned.methods import Subset as Subset
    from headcount.learned.run import LearnedGates as LearnedGates
    from headcount.learned.trace import Trace as Trace
    from headcount.learned.trace import load_trace as load_trace

__getattr__, __dir__ = lazily(__name__)
