"""The result of a run of gates, and its files in the run's folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import get_type_hints

from transformers import PreTrainedModel

from headcount.base.files import read_json, require_fields, write_json
from headcount.base.header import header
from headcount.base.text import line
from headcount.heads import Mask
from headcount.learned.trace import FILE, Trace, load_trace
from headcount.models.fingerprint import versions
from headcount.training import checkpoints

MASK = "mask.json"
NUMBERS = ("steps", "rows", "examples", "seconds", "route", "gap", "resumed_from")


@dataclass(frozen=True, kw_only=True)
class LearnedGates:
    """The heads that stay, and the weights trained with them."""

    model: PreTrainedModel = field(repr=False)
    """All heads are still there; remove the mask's dropped ones."""
    mask: Mask
    trace: Trace = field(repr=False)
    steps: int
    rows: int
    examples: int
    """Rows seen, each as often as it was."""
    seconds: float
    route: dict[str, object]
    """How the final number of heads came about."""
    gap: dict[str, float | str] | None = None
    """Score with training gates minus score with test gates, at the end of the search."""
    resumed_from: int | None = None

    def __repr__(self) -> str:
        done = f"{self.steps} steps on {self.rows} rows in {self.seconds:.1f} s"
        keeps = f"keeps {len(self.mask)} of {len(self.mask.layout)} heads"
        return line(f"LearnedGates({self.mask!r}; {done})", f"LearnedGates({keeps}; {done})")

    def to_json(self) -> dict[str, object]:
        """A plain dict, without the weights."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return {**numbers, "seconds": round(self.seconds, 3), **self.trace.summary()}

    def save(self, folder: Path) -> None:
        """Weights, mask and trace, then the result."""
        checkpoints.save_weights(self.model, folder)
        write_json(folder / MASK, header("mask") | self.mask.to_json())
        self.trace.save(folder / FILE)
        write_json(folder / checkpoints.RESULT, {**self.to_json(), "versions": versions()})


def finished(model: PreTrainedModel, folder: Path) -> LearnedGates:
    """A run that was done before, its weights loaded into the model."""
    checkpoints.load_weights(model, folder)
    result = read_json(folder / checkpoints.RESULT, "result of a run")
    mask = Mask.from_json(read_json(folder / MASK, "mask"))
    types = get_type_hints(LearnedGates)
    require_fields(
        result,
        {name: types[name] for name in NUMBERS},
        f"{folder / checkpoints.RESULT} is no result",
    )
    numbers = {name: result[name] for name in NUMBERS}
    return LearnedGates(model=model.eval(), mask=mask, trace=load_trace(folder), **numbers)
