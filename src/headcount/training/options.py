"""Everything that can be chosen about a training run, in one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from headcount.base.errors import UsageError
from headcount.base.names import require
from headcount.base.options import read, to_plain

SAVING = ("save_every", "save_minutes")


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """How to train. The defaults are the papers': 3 epochs, 128 tokens, batches of 32."""

    epochs: float = 3.0
    """How often the training rows are seen."""
    steps: int | None = None
    """Stop after so many steps, whatever the epochs say."""
    batch_size: int = 32
    """Rows per step, over all processes and pieces."""
    accumulate: int = 1
    """Pieces a batch is cut into, to save memory; the result stays the same."""
    max_length: int = 128
    """Tokens per row; longer rows are cut."""
    learning_rate: float = 2e-5
    """The highest learning rate."""
    schedule: Literal["linear", "cosine", "constant", "inverse_sqrt"] = "linear"
    """How the learning rate falls after the warm-up."""
    warmup: float = 0.0
    """Steps of warm-up, or their share of all steps when below 1."""
    weight_decay: float = 0.0
    """AdamW's weight decay; biases and norms are spared."""
    beta1: float = 0.9
    """Adam's memory of the gradient."""
    beta2: float = 0.999
    """Adam's memory of the squared gradient."""
    epsilon: float = 1e-8
    """What keeps Adam from dividing by zero."""
    clip: float = 1.0
    """Longest gradient; 0 leaves gradients as they are."""
    label_smoothing: float = 0.0
    """Share of the target given to all other classes or words."""
    attention_dropout: float | None = None
    """Dropout of attention probabilities; None keeps the model's."""
    hidden_dropout: float | None = None
    """Dropout everywhere else; None keeps the model's."""
    freeze: int | None = None
    """Train neither the embeddings nor the lowest layers, so many of them; None trains all."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Mixed precision; auto uses it where the device is faster with it."""
    gradient_checkpointing: bool = False
    """Compute activations twice instead of keeping them: less memory, more time."""
    like_lengths: bool = False
    """Put rows of like length into a batch: less padding, slightly less random order."""
    seed: int = 0
    """Seed of the order of the rows, dropout and masking."""
    log_every: int = 10
    """Steps between two points of the learning curve."""
    save_every: int | None = None
    """Steps between two checkpoints; None saves one after every epoch."""
    save_minutes: float = 5.0
    """Save also when the last checkpoint is so many minutes old; 0 goes by steps alone."""

    def __post_init__(self) -> None:
        problems = [
            text
            for wrong, text in (
                (self.epochs <= 0, f"epochs must be above 0, not {self.epochs}"),
                (
                    self.steps is not None and self.steps < 1,
                    f"steps must be at least 1, not {self.steps}",
                ),
                (self.batch_size < 1, f"batch_size must be at least 1, not {self.batch_size}"),
                (self.accumulate < 1, f"accumulate must be at least 1, not {self.accumulate}"),
                (self.max_length < 2, f"max_length must be at least 2, not {self.max_length}"),
                (
                    self.learning_rate <= 0,
                    f"learning_rate must be above 0, not {self.learning_rate}",
                ),
                (self.warmup < 0, f"warmup must not be negative, not {self.warmup}"),
                (self.clip < 0, f"clip must not be negative, not {self.clip}"),
                (
                    not 0 <= self.label_smoothing < 1,
                    f"label_smoothing must be in [0, 1), not {self.label_smoothing}",
                ),
                (
                    self.freeze is not None and self.freeze < 0,
                    f"freeze must not be negative, not {self.freeze}",
                ),
                (self.log_every < 1, f"log_every must be at least 1, not {self.log_every}"),
                (
                    self.save_every is not None and self.save_every < 1,
                    f"save_every must be at least 1, not {self.save_every}",
                ),
                (
                    self.save_minutes < 0,
                    f"save_minutes must not be negative, not {self.save_minutes}",
                ),
                *(
                    (
                        value is not None and not 0 <= value < 1,
                        f"{name} must be in [0, 1), not {value}",
                    )
                    for name, value in (
                        ("attention_dropout", self.attention_dropout),
                        ("hidden_dropout", self.hidden_dropout),
                    )
                ),
            )
            if wrong
        ]
        if problems:
            raise UsageError("; ".join(problems) + ".")

    @classmethod
    def read(cls, data: object, where: str) -> TrainOptions:
        """Options in plain data; `preset` names where they start from."""
        if not isinstance(data, Mapping) or "preset" not in data:
            return read(cls, data, where)
        rest = {name: value for name, value in data.items() if name != "preset"}
        start = PRESETS[require("preset", str(data["preset"]), PRESETS)]
        return read(cls, to_plain(start) | rest, where)

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def identity(self) -> dict[str, Any]:
        """What the weights and the learning curve depend on: all but how often a run saves."""
        return {name: value for name, value in self.to_json().items() if name not in SAVING}


TRANSLATION = TrainOptions(
    epochs=20,
    batch_size=256,
    learning_rate=1e-3,
    schedule="inverse_sqrt",
    warmup=1000,
    beta2=0.997,
    epsilon=1e-9,
    label_smoothing=0.1,
)
"""A Transformer trained for translation from scratch: Adam 0.9 / 0.997 / 1e-9, inverse square
root with warm-up (On the weak link, EMNLP 2020, §2.2). Cut its batches with `accumulate` to fit
the memory."""
POCKET = TrainOptions(learning_rate=3e-4, warmup=0.1, weight_decay=0.01)
"""Fine-tuning for the small shipped models, which need larger steps than a BERT."""
PRESETS = {"finetune": TrainOptions(), "translation": TRANSLATION, "pocket": POCKET}
