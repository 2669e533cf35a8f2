"""A plain function as a method: `hc.prune(model, longest, 0.5)` with

def longest(model, calibration, ratio) -> hc.Mask: ...

A record has its name and a digest of its source, not the function: it can be read, but the run
cannot be repeated from it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, ClassVar

from headcount.base.digest import digest
from headcount.base.errors import UsageError
from headcount.base.plugins import bytecode
from headcount.base.text import short
from headcount.heads import Layout, Mask

if TYPE_CHECKING:
    from torch import nn

    from headcount.pruning.methods import Decide, MethodFunction, MethodInputs


@dataclass(frozen=True, kw_only=True)
class FunctionMethod:
    """Calls a function with the model, calibration rows where there are any, and the ratio."""

    needs: ClassVar = "calibration"
    ratio: ClassVar = "needed"

    function: str
    """Where it was defined: module:qualified.name."""
    source: str
    """A digest of its source, default arguments and the values that it closes over."""

    @classmethod
    def of(cls, function: FunctionType) -> FunctionMethod:
        """The method that calls this function."""
        from headcount.pruning.methods import METHODS

        if function.__name__ in METHODS:
            raise UsageError(
                f"The function '{function.__name__}' has the name of a method that is registered: "
                "give it another."
            )
        where = f"{function.__module__}:{function.__qualname__}"
        method = cls(function=where, source=source_digest(function))
        object.__setattr__(method, "_call", function)  # no field: a record does not have it
        return method

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.rpartition(":")[2].rpartition(".")[2]

    @property
    def note(self) -> str:
        """What a record says of it."""
        return (
            f"The heads were chosen by the function '{self.name}' ({self.function}), which is not "
            "in the record: the run cannot be repeated from the record alone."
        )

    def prepare(self, model: nn.Module | Layout, given: MethodInputs) -> Decide:
        """What the function gives is checked: a mask of this model, of as many heads as asked."""
        from headcount.pruning.counts import require_ratio
        from headcount.pruning.methods import Decision
        from headcount.pruning.select import as_layout

        call: MethodFunction | None = getattr(self, "_call", None)
        if call is None:
            raise UsageError(f"{self.note} Pass the function to hc.prune in Python.")
        layout = as_layout(model)

        def decide(ratio: float | None, seed: int) -> Decision:
            share = require_ratio(self.name, ratio)
            mask = call(model, given.calibration, share)
            if not isinstance(mask, Mask) or mask.layout != layout:
                raise UsageError(
                    f"The function '{self.name}' gave {short(mask)}, where a hc.Mask of {layout} "
                    "is expected."
                )
            if len(mask) != layout.kept_at(share):
                raise UsageError(
                    f"The function '{self.name}' keeps {len(mask)} heads at ratio {share:g}; "
                    f"of {len(layout)} heads {layout.kept_at(share)} stay."
                )
            return Decision(mask=mask)

        return decide


def notes_of(method: object) -> tuple[str, ...]:
    """What the record of a method says beside its options."""
    return (method.note,) if isinstance(method, FunctionMethod) else ()


def source_digest(function: FunctionType) -> str:
    """A short name for what a function does, as far as it can be read off it."""
    try:
        code = inspect.getsource(function)
    except (OSError, TypeError):  # typed at a prompt
        code = bytecode(function)
    values = [function.__defaults__, function.__kwdefaults__]
    values += inspect.getclosurevars(function).nonlocals.values()
    parts = [bytecode(value) if inspect.isfunction(value) else repr(value) for value in values]
    return digest("\n".join([code, *parts]))
