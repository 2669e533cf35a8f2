"""What heads cost: parameters, FLOPs, cache and measured time."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.costs.bench import BenchResult as BenchResult
    from headcount.costs.cost import Cost as Cost
    from headcount.costs.cost import inspect as inspect
    from headcount.costs.per_head import HeadTimes as HeadTimes
    from headcount.costs.speed import BenchPlan as BenchPlan
    from headcount.costs.timed import Shape as Shape
    from headcount.costs.timing import Estimate as Estimate

__getattr__, __dir__ = lazily(__name__)
