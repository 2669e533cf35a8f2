"""How a model is opened, wherever one is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

Pooling = Literal["mean", "cls", "last", "max", "weighted"]
POOLINGS: dict[str, str] = dict(
    zip(get_args(Pooling), ("mean", "cls", "lasttoken", "max", "weightedmean"), strict=True)
)
"""How the tokens of a text become one vector, and what sentence-transformers calls it."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What opening a model needs to know beside its name."""

    tokenizer: str | None = None
    """Folder or name of the tokenizer, where it is not with the model."""
    allow_pickle: bool = False
    """Load weights that are pickled (.bin), which can run code: only if you trust them."""
    device: str = "auto"
    """Where to run: auto, cpu, cuda, cuda:1, mps."""
    dtype: Literal["float32", "float16", "bfloat16", "float64"] | None = None
    """Convert the weights to this type, for training too; by default as saved."""

    pooling: Pooling | None = None
    """How an embedding model without modules.json pools its tokens into a vector; else mean."""

    @property
    def loading(self) -> dict[str, Any]:
        """What of this `models.load.load` takes."""
        options: dict[str, object] = {"allow_pickle": self.allow_pickle}
        return options if self.dtype is None else options | {"dtype": self.dtype}
