"""The step `lora`: distillation that trains adapters of low rank alone (`models/adapters.py`)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from headcount.base.errors import UsageError
from headcount.base.options import checked
from headcount.repair.distil import Distil

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, kw_only=True)
@checked
class Lora(Distil):
    """Train adapters of low rank towards the full model's answers, then merge them."""

    done: ClassVar[str] = "distilled by LoRA"
    extra: ClassVar[str] = "lora"

    rank: int = 8
    """Of the adapters."""
    adapt: Literal["all", "attention"] = "all"
    """Which linear layers have one: all, or the projections of attention."""
    learning_rate: float = 1e-3
    """Peak learning rate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank < 1:
            raise UsageError(f"The rank of an adapter is at least 1, not {self.rank}.")
        if self.adapt not in ("all", "attention"):
            raise UsageError(f"What is adapted is all or attention, not {self.adapt!r}.")

    def trained(self, small: PreTrainedModel) -> AbstractContextManager[None]:
        """Adapters of the layers that are there."""
        from headcount.models.adapters import adaptable_layers, adapted, attention_layers

        layers = adaptable_layers(small)
        if self.adapt == "attention":
            attention = attention_layers(small)
            layers = [name for name in layers if name in attention]
            if not layers:
                raise UsageError(
                    f"{type(small).__name__} has no attention left that LoRA could adapt: take "
                    "--adapt all."
                )
        return adapted(small, layers, rank=self.rank, seed=self.seed)
