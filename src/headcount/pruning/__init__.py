"""Methods that decide which heads stay, one file each: from what they need to a mask."""

from typing import TYPE_CHECKING

from headcount.base.lazy import lazily

if TYPE_CHECKING:
    from headcount.pruning.cluster import Cluster as Cluster
    from headcount.pruning.importance import Importance as Importance
    from headcount.pruning.layers import Layers as Layers
    from headcount.pruning.meta import Meta as Meta
    from headcount.pruning.methods import METHODS as METHODS
    from headcount.pruning.methods import Decision as Decision
    from headcount.pruning.methods import MethodInputs as MethodInputs
    from headcount.pruning.pattern import Pattern as Pattern
    from headcount.pruning.random import Random as Random
    from headcount.pruning.surgeon import Surgeon as Surgeon

__getattr__, __dir__ = lazily(__name__)
